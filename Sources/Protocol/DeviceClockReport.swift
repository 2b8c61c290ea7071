package import Timing

/// What was measured of a device's own clock against its host's over a take, for the manifest (`device_clock`).
package struct DeviceClockReport: Codable, Sendable, Hashable {
    /// Where the readings came from: "htstamp", "reading".
    package var source: String
    /// The device's rate against CLOCK_MONOTONIC, parts per million; positive when the device is fast.
    ///
    /// Nil when too little was seen.
    package var skewPPM: Double?
    /// Three standard errors of it, ppm.
    package var skewUncertaintyPPM: Double?
    /// Standard deviation of the readings that count about the fitted line.
    package var residual: Interval?
    /// Lines that were needed: one more for each overrun, unplug and change of the rate.
    package var lines: Int64

    package init(
        source: String, skewPPM: Double?, skewUncertaintyPPM: Double?, residual: Interval?, lines: Int64
    ) {
        self.source = source
        self.skewPPM = skewPPM
        self.skewUncertaintyPPM = skewUncertaintyPPM
        self.residual = residual
        self.lines = lines
    }

    private enum CodingKeys: String, CodingKey {
        case source, lines
        case skewPPM = "skew_ppm"
        case skewUncertaintyPPM = "skew_uncertainty_ppm"
        case residual = "residual_ns"
    }
}
