package import Protocol
package import Timing

/// What stands in a line of a serial sensor, as the configuration describes it.
package struct LineLayout: Sendable, Hashable {
    package enum Format: String, Sendable, CaseIterable { case csv, json }

    /// Where a number stands.
    package enum Place: Sendable, Hashable {
        /// The n-th field of a CSV line, from 0.
        case field(Int)
        /// A path in a JSON object: "acc.x", "gyro.0".
        case key([UInt8])
    }

    /// A column of the stream: value = (number + offset) × scale.
    package struct Channel: Sendable, Hashable {
        package var name: String
        package var unit: String
        package var place: Place
        package var scale: Double
        package var offset: Double

        package init(name: String, unit: String, place: Place, scale: Double = 1, offset: Double = 0) {
            self.name = name
            self.unit = unit
            self.place = place
            self.scale = scale
            self.offset = offset
        }
    }

    /// The device's own time.
    package struct Counter: Sendable, Hashable {
        package var place: Place
        package var shape: CounterShape
        /// Ticks for one unit of the printed number: 1, or more where the number has a fraction.
        package var ticksPerUnit: UInt64

        package init(place: Place, shape: CounterShape, ticksPerUnit: UInt64 = 1) {
            self.place = place
            self.shape = shape
            self.ticksPerUnit = ticksPerUnit
        }
    }

    package var format: Format
    /// Between two fields of CSV; a space stands for any number of spaces and tabs.
    package var separator: UInt8
    /// Lines that don't begin with it are something else, and are left out: "$IMU,"; empty for all.
    package var prefix: [UInt8]
    package var channels: [Channel]
    package var counter: Counter?
    /// Counts samples, so that losses are told exactly.
    package var sequence: Place?

    package init(
        format: Format, separator: UInt8 = UInt8(ascii: ","), prefix: [UInt8] = [], channels: [Channel],
        counter: Counter? = nil, sequence: Place? = nil
    ) {
        self.format = format
        self.separator = separator
        self.prefix = prefix
        self.channels = channels
        self.counter = counter
        self.sequence = sequence
    }

    /// The channels as the manifest has them.
    package var sensor: SensorFormat { SensorFormat(channels: channels.map { .init(name: $0.name, unit: $0.unit) }) }
}
