/// The time of one frame as a fraction of a second, as V4L2 has it.
package struct FrameInterval: Sendable, Hashable {
    package var numerator: UInt32
    package var denominator: UInt32

    package init(_ numerator: UInt32, _ denominator: UInt32) {
        self.numerator = numerator
        self.denominator = denominator
    }

    /// The interval of a rate: whole rates exactly, the television rates (29.97, 59.94) as n/1001, others to 1/1000.
    package init(rate: Double) {
        let rounded = rate.rounded()
        let television = (rate * 1.001).rounded()
        guard rate.isFinite, rate > 0, rate < 1_000_000 else {
            self.init(1, 1)
            return
        }
        if abs(rate - rounded) < 1e-6, rounded >= 1 {
            self.init(1, UInt32(rounded))
        } else if television >= 1, abs(rate - television / 1.001) < 0.005 {
            self.init(1001, UInt32(television) * 1000)
        } else {
            self.init(1000, UInt32(max(1, (rate * 1000).rounded())))
        }
    }

    /// Frames a second; nil for an interval of zero or without end.
    package var rate: Double? {
        guard numerator > 0, denominator > 0 else { return nil }
        return Double(denominator) / Double(numerator)
    }
}
