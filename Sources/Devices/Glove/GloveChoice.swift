internal import Synchronization

/// Which of the gloves that are heard to ask for its configuration.
///
/// The name is a hint: a glove whose name has the wanted side comes first; the others have their turn after a while.
final class GloveChoice: Sendable {
    private let side: GloveSide
    private let taken: Set<String>
    private let pinned: String?
    private let isNamed: Bool
    private let found = Mutex<Advertisement?>(nil)

    init(_ side: GloveSide, taken: Set<String>, pinned: String?, isNamed: Bool) {
        self.side = side
        self.taken = taken
        self.pinned = pinned
        self.isNamed = isNamed
    }

    var result: Advertisement? { found.withLock { $0 } }

    /// True when it is the one, and no more has to be heard.
    func take(_ advertisement: Advertisement, isPatient: Bool) -> Bool {
        let identity = "\(advertisement.peer)"
        guard advertisement.isConnectable, !taken.contains(identity) else { return false }
        if let pinned, pinned != identity { return false }
        let isHinted = advertisement.name.flatMap { GloveSide(name: $0) } == side
        guard isNamed || pinned != nil || isHinted || !isPatient else { return false }
        found.withLock { $0 = $0 ?? advertisement }
        return true
    }
}
