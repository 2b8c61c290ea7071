internal import Synchronization

/// The gloves of one agent: one session for each, and one owner for each address.
///
/// Concurrency: one `Mutex`; from anywhere.
package final class GloveRegistry: Sendable {
    /// What a configuration says of one glove.
    package struct Wish: Sendable, Hashable {
        package var side: GloveSide
        /// Of the configuration; nil takes any glove of that side.
        package var address: String?

        package init(side: GloveSide, address: String?) {
            self.side = side
            self.address = address
        }
    }

    /// Why a stream can't be made of a glove.
    package enum Conflict: Error, Sendable, Hashable, CustomStringConvertible {
        case otherSide(GloveSide)
        case sameRows

        package var description: String {
            switch self {
            case .otherSide(let side): "an address that isn't the \(side.rawValue) glove's: one glove has one side"
            case .sameRows: "rows that no other stream of this glove is made of"
            }
        }
    }

    private struct State {
        var sessions: [(wish: Wish, session: GloveSession, modalities: Set<GloveModality>)] = []
        var owners: [String: GloveSide] = [:]
    }
    private let state = Mutex(State())

    package init() {}

    /// The session of a glove, the same for all its streams.
    func session(
        _ wish: Wish, for modality: GloveModality, _ make: () -> any GloveTransport
    ) throws(Conflict) -> GloveSession {
        let found = state.withLock { state -> Result<GloveSession, Conflict> in
            let index = state.sessions.firstIndex { entry in
                if let address = wish.address { return entry.wish.address == address }
                return entry.wish.side == wish.side
            }
            guard let index else {
                let claims = Claims(registry: self, side: wish.side)
                let session = GloveSession(wish.side, transport: make(), claims: claims)
                state.sessions.append((wish, session, [modality]))
                return .success(session)
            }
            let known = state.sessions[index]
            guard known.wish.side == wish.side else { return .failure(.otherSide(known.wish.side)) }
            guard state.sessions[index].modalities.insert(modality).inserted else { return .failure(.sameRows) }
            return .success(known.session)
        }
        return try found.get()
    }

    private struct Claims: GloveClaims {
        let registry: GloveRegistry
        let side: GloveSide

        /// A side has at most one glove, so who claims for a side takes the place of what it had.
        func claim(_ identity: String) -> Bool {
            registry.state.withLock { state in
                if let owner = state.owners[identity], owner != side { return false }
                for (old, owner) in state.owners where owner == side && old != identity { state.owners[old] = nil }
                state.owners[identity] = side
                return true
            }
        }

        var taken: Set<String> {
            registry.state.withLock { state in Set(state.owners.filter { $0.value != side }.keys) }
        }

        var pinned: String? {
            registry.state.withLock { state in state.owners.first { $0.value == side }?.key }
        }
    }
}
