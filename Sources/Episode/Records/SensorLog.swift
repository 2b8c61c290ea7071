package import Timing

/// `<sensor>.jsonl`: one line for each sample of a sensor, in order; used by one thread.
///
/// Whole values are written without a point, all others with the shortest digits that read back the same. A value that
/// isn't a number becomes null and is counted. Errors are `SystemError`s with the path.
package final class SensorLog {
    private let file: LineFile
    private let clock: [UInt8]
    /// For each channel what stands before its value: `{"ax":` and `,"ay":`.
    private let prefixes: [[UInt8]]
    /// Values that were NaN or infinite.
    package private(set) var nonNumbers: Int64 = 0

    /// Makes the file, which must not exist yet.
    ///
    /// `channels` are the names in the order of a row's values; each once.
    package init(path: String, clockDomain: String, channels: [String]) throws {
        guard !channels.isEmpty, Set(channels).count == channels.count else {
            throw EpisodeError(
                path, "the \(channels.count) channels of a sensor need names, and each name only once",
                cure: "correct the sensor's channels in the configuration")
        }
        file = try LineFile(path: path)
        clock = RowKeys.clock(domain: clockDomain)
        prefixes = channels.enumerated().map { index, name in
            var bytes: [UInt8] = []
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            bytes.appendJSON(name)
            bytes.append(UInt8(ascii: ":"))
            return bytes
        }
    }

    /// Rows that were given.
    package var rows: Int64 { file.lines }
    package var bytesWritten: Int64 { file.bytes }

    /// Adds one row.
    ///
    /// - Throws: `EpisodeError` when the number of values isn't that of the channels; the row isn't written then.
    package func append(
        frame: Int64, capture: Timestamp<HostTime>, uncertainty: Interval, values: [Double],
        device: Timestamp<DeviceTime>?
    ) throws {
        guard values.count == prefixes.count else {
            throw EpisodeError(file.path, "a row with \(values.count) values for \(prefixes.count) channels")
        }
        try file.append { row in
            RowKeys.begin(&row, frame: frame, capture: capture, clock: clock, uncertainty: uncertainty)
            row.appendText(",\"channels\":{")
            for (prefix, value) in zip(prefixes, values) {
                row.append(contentsOf: prefix)
                row.appendJSON(value)
                if !value.isFinite { nonNumbers += 1 }
            }
            row.append(UInt8(ascii: "}"))
            RowKeys.end(&row, device: device)
        }
    }

    /// Hands all rows to the system; they survive this program's death then.
    package func flush() throws { try file.flush() }

    /// Brings all rows to the disk.
    package func sync() throws { try file.sync() }

    package func finish() throws { try file.sync() }
}
