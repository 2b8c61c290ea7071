package import Protocol

/// Sees to it that a repeated command is done once: it knows what is under way, and keeps the last answers.
package struct AnswerCache: Sendable {
    /// A command of one coordinator; nil is the only one of a plain loopback.
    package struct Key: Hashable, Sendable {
        package let coordinator: CurveKey?
        package let command: UniqueID

        package init(coordinator: CurveKey?, command: UniqueID) {
            self.coordinator = coordinator
            self.command = command
        }
    }

    package enum Reception: Sendable, Hashable {
        /// Do it.
        case new
        /// It is being done; its answer will go to where it was asked for last.
        case underWay
        /// It was done; this is what was answered.
        case answered([[UInt8]])
        /// The coordinator has too much under way.
        case tooMany
    }

    package struct Limits: Sendable {
        /// Answers that are kept, and their bytes together.
        package var answers = 1024
        package var bytes = 16 << 20
        /// Commands of one coordinator that may be under way.
        package var underWay = 64

        package init(answers: Int = 1024, bytes: Int = 16 << 20, underWay: Int = 64) {
            self.answers = answers
            self.bytes = bytes
            self.underWay = underWay
        }
    }

    private let limits: Limits
    private var running: [Key: PeerID] = [:]
    private var answers: [Key: [[UInt8]]] = [:]
    /// The keys of `answers` by age; those before `oldest` are gone already.
    private var order: [Key] = []
    private var oldest = 0
    private var bytes = 0

    package init(limits: Limits = Limits()) { self.limits = limits }

    /// A command has come in.
    package mutating func receive(_ key: Key, from peer: PeerID) -> Reception {
        if let answer = answers[key] { return .answered(answer) }
        if running[key] != nil {
            running[key] = peer
            return .underWay
        }
        guard running.keys.count(where: { $0.coordinator == key.coordinator }) < limits.underWay else {
            return .tooMany
        }
        running[key] = peer
        return .new
    }

    /// A command is done.
    ///
    /// - Parameters:
    ///   - key: of the command.
    ///   - answer: its frames.
    ///   - keep: false for answers that are large and can be made again.
    /// - Returns: who is to have the answer.
    package mutating func finish(_ key: Key, with answer: [[UInt8]], keep: Bool = true) -> PeerID? {
        guard let peer = running.removeValue(forKey: key) else { return nil }
        if keep {
            answers[key] = answer
            order.append(key)
            bytes += Self.size(answer)
            trim()
        }
        return peer
    }

    private mutating func trim() {
        while answers.count > limits.answers || (bytes > limits.bytes && answers.count > 1) {
            if let gone = answers.removeValue(forKey: order[oldest]) { bytes -= Self.size(gone) }
            oldest += 1
        }
        if oldest > 1024 {
            order.removeFirst(oldest)
            oldest = 0
        }
    }

    private static func size(_ frames: [[UInt8]]) -> Int { frames.reduce(0) { $0 + $1.count } }
}
