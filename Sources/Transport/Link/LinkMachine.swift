package import Timing

/// Decides which address of an agent is used, when one is tried again, and what a failed handshake means.
///
/// All addresses are tried at once; the first whose handshake succeeds is used until it is lost. An address is an
/// index. libzmq gives up on an address after most failures of a handshake, so each failure ends in a new socket.
package struct LinkMachine: Sendable {
    /// What a failed handshake tells about the keys.
    package enum Finding: Sendable, Hashable {
        /// The agent doesn't trust our key.
        case refusedOurs
        /// What answers doesn't hold the key that we expect.
        case otherKey
        /// What answers speaks ZeroMQ without our encryption, or no ZeroMQ at all.
        case notEncrypted
    }

    package enum Failure: Sendable, Hashable {
        /// The other side said no.
        case refused
        /// The mechanisms or the protocols differ.
        case mismatch
        /// The connection ended in the handshake, as it does when a server can't read what was made for another key.
        /// `quickly`: within a second; a silent peer takes longer.
        case cut(quickly: Bool)
    }

    package enum Input: Sendable, Hashable {
        case start
        case established(Int)
        case failed(Int, Failure)
        /// The connection in use broke.
        case lost(Int, String)
        case retryDue(Int)
        case graceOver
    }

    package enum Action: Sendable, Hashable {
        case open(Int)
        case close(Int)
        case retry(Int, after: Interval)
        /// Time for another address to do better, before a finding is told.
        case waitGrace(Interval)
        case connected(Int)
        case disconnected(String)
        case wrongKey(Finding, Int)
    }

    /// A cut handshake alone may be an agent that was just stopped, which the next try doesn't find; two are a key.
    private static let cutsForFinding = 2
    private static let grace = Interval.milliseconds(500)

    private let count: Int
    package private(set) var chosen: Int?
    private var failures: [Int: Int] = [:]
    private var findings: [Int: Finding] = [:]
    private var told: Finding?
    private var isGraceOver = false
    private var isInGrace = false

    package init(addresses: Int) { count = addresses }

    package mutating func handle(_ input: Input) -> [Action] {
        switch input {
        case .start: return (0..<count).map { .open($0) }
        case .established(let path): return established(path)
        case .failed(let path, let failure): return failed(path, failure)
        case .lost(let path, let reason):
            guard chosen == path else { return [] }
            chosen = nil
            return [.close(path), .disconnected(reason)] + (0..<count).map { .open($0) }
        case .retryDue(let path): return chosen == nil ? [.open(path)] : []
        case .graceOver:
            isGraceOver = true
            return tell()
        }
    }

    private mutating func established(_ path: Int) -> [Action] {
        guard chosen == nil else { return chosen == path ? [] : [.close(path)] }
        chosen = path
        failures = [:]
        findings = [:]
        told = nil
        (isInGrace, isGraceOver) = (false, false)
        return (0..<count).filter { $0 != path }.map { .close($0) } + [.connected(path)]
    }

    private mutating func failed(_ path: Int, _ failure: Failure) -> [Action] {
        guard chosen == nil else { return [] }
        let number = failures[path, default: 0] + 1
        failures[path] = number
        switch failure {
        case .refused: findings[path] = .refusedOurs
        case .mismatch: findings[path] = .notEncrypted
        case .cut(quickly: true) where number >= Self.cutsForFinding: findings[path] = findings[path] ?? .otherKey
        case .cut: break
        }
        let wait = Interval.milliseconds([50, 100, 300, 600][min(number, 4) - 1])
        let again: [Action] = [.close(path), .retry(path, after: number > 4 ? .seconds(1) : wait)]
        guard !findings.isEmpty else { return again }
        if count == 1 { isGraceOver = true }
        if !isGraceOver && !isInGrace {
            isInGrace = true
            return again + [.waitGrace(Self.grace)]
        }
        return again + tell()
    }

    private mutating func tell() -> [Action] {
        guard chosen == nil, isGraceOver, let path = findings.keys.min(), let finding = findings[path] else {
            return []
        }
        // Told once; but a finding that says more than the last is news.
        guard told != finding else { return [] }
        told = finding
        return [.wrongKey(finding, path)]
    }
}
