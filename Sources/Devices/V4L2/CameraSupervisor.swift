package import Timing

/// Decides when a camera that doesn't deliver is restarted, waited for, or given up.
///
/// Silence of max(1 s, 5 periods) is a stall: the camera is closed and opened again, never sooner than 2 s after, and
/// three times a minute at most; then it has failed, with the length of the silence. A camera that was unplugged, or that
/// another program has taken, is waited for as long as the take goes on. Pure.
package struct CameraSupervisor: Sendable {
    /// What kind of trouble it is.
    package enum Trouble: Sendable, Hashable {
        /// It isn't attached.
        case gone
        /// Another program has it, or it may not be used yet.
        case held
        /// It is there and doesn't work.
        case broken
    }

    package enum Event: Sendable, Hashable {
        case frame
        case broke(Trouble, String)
        /// A camera was plugged in, it may be this one.
        case plugged
        case reopened
        case notReopened(Trouble, String)
        /// Time has passed; to be called some times a second.
        case tick
    }

    package enum Action: Sendable, Hashable {
        case close
        case reopen
        /// Told once for each interruption, and again when its cause has become another.
        case interrupted(since: Timestamp<HostTime>, cause: String)
        /// The frame that was handed in is the first one after an interruption.
        case resumed(since: Timestamp<HostTime>, cause: String)
        case fail(String)
    }

    package static let leastSilence = Interval.seconds(1)
    package static let silentPeriods: Int64 = 5
    /// A camera may take so long for its first frame.
    package static let firstFrame = Interval.seconds(3)
    /// Between closing and opening.
    package static let pause = Interval.seconds(2)
    package static let restarts = 3
    package static let window = Interval.seconds(60)

    private enum State: Sendable, Hashable {
        /// The stream is on and no frame has come since.
        case starting(Timestamp<HostTime>)
        case streaming
        /// It is closed; nothing is tried before the instant.
        case closed(until: Timestamp<HostTime>)
        case failed
    }

    /// How long nothing may come.
    package let silence: Interval
    private let firstFrame: Interval
    private var state: State
    private var last: Timestamp<HostTime>
    private var interruption: (since: Timestamp<HostTime>, cause: String)?
    private var attempts: [Timestamp<HostTime>] = []

    /// The stream is on, and its first frame has come.
    ///
    /// `rate` is in frames a second; nil when unknown.
    package init(rate: Double?, at now: Timestamp<HostTime>) {
        let period = rate.map { $0 > 0 && $0.isFinite ? Interval.seconds(1 / $0) : .zero } ?? .zero
        silence = max(Self.leastSilence, period * Self.silentPeriods)
        firstFrame = max(Self.firstFrame, period * (2 * Self.silentPeriods))
        state = .streaming
        last = now
    }

    package var hasFailed: Bool { state == .failed }
    /// The cause of an interruption that hasn't ended.
    package var openGap: String? { interruption?.cause }
    /// How long a camera may take for its first frame.
    package var firstFrameLimit: Interval { firstFrame }

    package mutating func handle(_ event: Event, at now: Timestamp<HostTime>) -> [Action] {
        if state == .failed { return [] }
        switch event {
        case .frame: return frame(now)
        case .broke(let trouble, let cause):
            if case .closed = state { return [] }
            return interrupt(trouble, cause, now)
        case .plugged:
            // A new device has had its rest; only after a failure to open it again is the pause kept.
            guard case .closed = state, interruption != nil else { return [] }
            return [.reopen]
        case .reopened:
            guard case .closed = state else { return [] }
            state = .starting(now)
            return []
        case .notReopened(let trouble, let cause):
            guard case .closed = state else { return [] }
            return interrupt(trouble, cause, now)
        case .tick: return tick(now)
        }
    }

    private mutating func frame(_ now: Timestamp<HostTime>) -> [Action] {
        if case .closed = state { return [] }
        state = .streaming
        last = now
        guard let interruption else { return [] }
        self.interruption = nil
        return [.resumed(since: interruption.since, cause: interruption.cause)]
    }

    private mutating func tick(_ now: Timestamp<HostTime>) -> [Action] {
        switch state {
        case .streaming where now - last >= silence:
            return interrupt(.broken, "no frame came for \(Self.words(now - last))", now)
        case .starting(let start) where now - start >= firstFrame:
            return interrupt(.broken, "no frame came for \(Self.words(now - last))", now)
        case .closed(let until) where now >= until:
            // The answer is `reopened` or `notReopened`; until then no second one.
            state = .closed(until: now + Self.pause)
            return [.reopen]
        default: return []
        }
    }

    private mutating func interrupt(_ trouble: Trouble, _ cause: String, _ now: Timestamp<HostTime>) -> [Action] {
        var actions: [Action] = [.close]
        if interruption?.cause != cause, trouble != .broken || interruption == nil {
            let since = interruption?.since ?? last
            interruption = (since, cause)
            actions.append(.interrupted(since: since, cause: cause))
        }
        state = .closed(until: now + Self.pause)
        guard trouble == .broken else { return actions }
        attempts.removeAll { now - $0 > Self.window }
        guard attempts.count < Self.restarts else {
            state = .failed
            return actions + [.fail(failure(cause, now))]
        }
        attempts.append(now)
        return actions
    }

    private func failure(_ cause: String, _ now: Timestamp<HostTime>) -> String {
        let silence = Self.words(now - (interruption?.since ?? last))
        let tries = "nothing came for \(silence), and \(attempts.count) restarts didn't help"
        return cause.hasPrefix("no frame came") ? "\(tries); unplug it and plug it in again" : "\(tries): \(cause)"
    }

    /// "3.2 s".
    package static func words(_ interval: Interval) -> String {
        let tenths = (interval.nanoseconds &+ 50_000_000) / 100_000_000
        return "\(tenths / 10).\(tenths.magnitude % 10) s"
    }
}
