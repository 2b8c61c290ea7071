/// An exchange on the oscillators of both machines instead of on their steered clocks, in ns.
///
/// Where the ends didn't say how they are steered, the clocks themselves take the place of the oscillators.
struct OscillatorExchange: Sendable {
    /// On the local oscillator.
    let sent: Int64
    let received: Int64
    /// At `sent`, the remote oscillator minus the local one is at most that.
    let upper: Int64
    /// At `received`, the remote oscillator minus the local one is at least that.
    let lower: Int64
    /// What the readings of the steering can be wrong by.
    let error: Double

    init(_ exchange: ClockExchange<RigTime, HostTime>, limits: ClockLimits) {
        var (local, remote, error) = (Int64(0), Int64(0), 0.0)
        if let here = exchange.localDiscipline, let there = exchange.remoteDiscipline {
            (local, remote) = (here.difference.nanoseconds, there.difference.nanoseconds)
            // Each was read within the exchange, and its clock was steered by no more than the limit meanwhile.
            let span = Double((exchange.received - exchange.sent).magnitude.nanoseconds)
            error = Double(here.error.nanoseconds) + Double(there.error.nanoseconds) + 2 * limits.skew * span
        }
        sent = exchange.sent.nanoseconds &- local
        received = exchange.received.nanoseconds &- local
        upper = (exchange.arrived.nanoseconds &- remote) &- sent
        lower = (exchange.answered.nanoseconds &- remote) &- received
        self.error = error
    }

    /// Whether no difference of its stamps overflows: within ±73 years.
    var isInRange: Bool { [sent, received, upper, lower].allSatisfy { $0.magnitude < 1 << 61 } }
}

extension FeasibleLines {
    /// Lines around a local instant that hold all which one exchange allows; offsets count from `origin`.
    init(around exchange: OscillatorExchange, at reference: Int64, origin: Int64, limits: ClockLimits) {
        let skew = limits.skew * 1e9
        let reach = abs(seconds(exchange.sent, reference)) + abs(seconds(exchange.received, reference))
        let width = Double((exchange.upper &- exchange.lower).magnitude) + abs(Double(exchange.upper &- origin))
        let half = width + limits.error(atAge: reach) + exchange.error + skew * reach + 1000
        self.init(offsets: -half...half, skews: -skew...skew)
    }

    /// Rules out what an exchange rules out.
    mutating func cut(_ exchange: OscillatorExchange, at reference: Int64, origin: Int64, limits: ClockLimits) {
        let (before, after) = (seconds(exchange.sent, reference), seconds(exchange.received, reference))
        require(
            atMost: Double(exchange.upper &- origin) + limits.error(atAge: before) + exchange.error, at: before)
        require(
            atLeast: Double(exchange.lower &- origin) - limits.error(atAge: after) - exchange.error, at: after)
    }
}

/// The seconds from one instant to another, both in ns.
func seconds(_ instant: Int64, _ reference: Int64) -> Double { Double(instant &- reference) / 1e9 }
