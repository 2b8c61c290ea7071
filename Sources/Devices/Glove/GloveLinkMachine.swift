package import Timing

/// When a glove's link is made, believed, given up and made anew.
///
/// Pure: events in, actions out. A link is good with the first whole data packet and not before; silence of two seconds is
/// a lost link, whatever the radio says. While a glove is in use it is tried for without an end.
package struct GloveLinkMachine: Sendable {
    package enum State: Sendable, Hashable {
        case closed
        case connecting
        /// Connected, and nothing has come yet.
        case waiting(since: Timestamp<HostTime>)
        case streaming(last: Timestamp<HostTime>)
        case resting(until: Timestamp<HostTime>)
    }

    package enum Event: Sendable, Hashable {
        case open
        case tick
        case connected
        /// A whole data packet.
        case data
        case failed(GloveFault)
        case ended(String)
        case close
    }

    package enum Action: Sendable, Hashable {
        /// Begin to connect; it may take until the next event.
        case connect(within: Interval)
        case disconnect
        /// The glove can be used.
        case ready
        /// It was lost, and can be used again.
        case recovered
        case lost(String)
        /// It can't be had; only before it was ready.
        case giveUp(GloveFault)
    }

    /// Silence that is a lost link.
    package static let silence = Interval.seconds(2)
    /// How long the first packet may take after the connection.
    package static let firstPacket = Interval.seconds(3)
    /// How long opening may take in all; below the coordinator's patience of 20 s.
    package static let openPatience = Interval.seconds(15)
    private static let attemptPatience = Interval.seconds(10)
    private static let mostRest = Interval.seconds(5)

    package private(set) var state = State.closed
    /// Since it was lost, or since it was opened.
    package private(set) var attempts = 0
    package private(set) var reconnects = 0
    private var wasReady = false
    private var deadline: Timestamp<HostTime>?
    private var lastFault: GloveFault?

    package init() {}

    package mutating func handle(_ event: Event, at now: Timestamp<HostTime>) -> [Action] {
        switch (event, state) {
        case (.open, .closed):
            self = GloveLinkMachine()
            deadline = now + Self.openPatience
            return connect(now)
        case (.open, _): return []
        case (.close, .closed): return []
        case (.close, _):
            state = .closed
            return [.disconnect]
        case (_, .closed): return []

        case (.connected, .connecting):
            state = .waiting(since: now)
            return []
        case (.data, .connecting), (.data, .waiting):
            state = .streaming(last: now)
            attempts = 0
            defer { wasReady = true }
            if wasReady { reconnects += 1 }
            return [wasReady ? .recovered : .ready]
        case (.data, .streaming):
            state = .streaming(last: now)
            return []

        case (.failed(let fault), .connecting): return fail(fault, now)
        case (.ended(let why), .connecting), (.ended(let why), .waiting):
            return [.disconnect] + fail(Self.broken(why), now)
        case (.ended(let why), .streaming): return lose(why, now)

        case (.tick, .waiting(let since)) where now - since >= Self.firstPacket:
            let fault = GloveFault(
                .timedOut, "the glove is connected and sends nothing", cure: "switch it off and on")
            return [.disconnect] + fail(fault, now)
        case (.tick, .streaming(let last)) where now - last >= Self.silence:
            return lose("nothing came for \(Self.silence.seconds) s", now)
        case (.tick, .resting(let until)) where now >= until: return connect(now)
        case (.tick, _): return []
        case (.connected, _), (.failed, _), (.ended, _), (.data, .resting): return []
        }
    }

    private mutating func connect(_ now: Timestamp<HostTime>) -> [Action] {
        state = .connecting
        attempts += 1
        let left = wasReady ? Self.attemptPatience : max(.seconds(1), (deadline ?? now) - now)
        return [.connect(within: min(Self.attemptPatience, left))]
    }

    private mutating func lose(_ why: String, _ now: Timestamp<HostTime>) -> [Action] {
        attempts = 0
        // At once, for the first time.
        return [.lost(why), .disconnect] + connect(now)
    }

    private mutating func fail(_ fault: GloveFault, _ now: Timestamp<HostTime>) -> [Action] {
        lastFault = fault
        let rest = min(.milliseconds(500) * Int64(attempts), Self.mostRest)
        if !wasReady, fault.isFinal || now + rest >= deadline ?? now {
            state = .closed
            return [.giveUp(fault)]
        }
        state = .resting(until: now + rest)
        return []
    }

    private static func broken(_ why: String) -> GloveFault {
        GloveFault(.disconnected, "the glove's link broke while it was made: \(why)", cure: "move it nearer")
    }
}
