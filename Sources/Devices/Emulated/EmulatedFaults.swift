package import Protocol

/// What an emulated device is told to do wrong, counted from each start.
package struct EmulatedFaults: Sendable, Hashable {
    /// Each sample is lost with this probability, in percent.
    package var dropPercent = 0.0
    /// Nothing more comes after so many seconds; nothing is said about it.
    package var stallAfter: Double?
    /// A stall ends after so many seconds; nil: never.
    package var stallFor: Double?
    /// The device breaks for good after so many seconds.
    package var failAfter: Double?
    /// Each stamp is later than the truth by so many milliseconds, and nothing says so: a lie.
    package var stampErrorMilliseconds = 0.0

    package init(
        dropPercent: Double = 0, stallAfter: Double? = nil, stallFor: Double? = nil, failAfter: Double? = nil
    ) {
        self.dropPercent = dropPercent
        self.stallAfter = stallAfter
        self.stallFor = stallFor
        self.failAfter = failAfter
    }

    /// Keys: `drop_percent`, `stall_after_s`, `stall_for_s`, `fail_after_s`, `stamp_error_ms`.
    package init(from reader: inout ConfigReader) throws(ConfigReader.Invalid) {
        dropPercent = try reader.number("drop_percent", default: 0, in: 0...100)
        stallAfter = try Self.seconds("stall_after_s", from: &reader)
        stallFor = try Self.seconds("stall_for_s", from: &reader)
        failAfter = try Self.seconds("fail_after_s", from: &reader)
        stampErrorMilliseconds = try reader.number("stamp_error_ms", default: 0, in: -1e8...1e8)
    }

    private static func seconds(_ key: String, from reader: inout ConfigReader) throws(ConfigReader.Invalid) -> Double?
    {
        // The reader has no optional number; NaN can't be read from a file, so it stands for "absent".
        let value = try reader.number(key, default: .nan, in: 0...1_000_000)
        return value.isNaN ? nil : value
    }

    /// Whether the device stalls at so many seconds after the start.
    func stalls(at seconds: Double) -> Bool {
        guard let stallAfter, seconds >= stallAfter else { return false }
        return stallFor.map { seconds < stallAfter + $0 } ?? true
    }
}
