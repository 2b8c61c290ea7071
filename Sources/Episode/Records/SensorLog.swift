package import Timing

/// `<sensor>.jsonl`: one line for each sample of a sensor, in order; used by one thread.
///
/// Whole values are written without a point, all others with the shortest digits that read back the same. A value that
/// isn't a number becomes null and is counted. Errors are `SystemError`s with the path.
///
/// A row is put together in bytes of its own that are large enough for any, and copied once: growing arrays piece by piece
/// took twice the time of the numbers.
package final class SensorLog {
    private let file: LineFile
    /// All that is the same in each row, one after the other; the pieces point into it.
    private let texts: UnsafeMutablePointer<UInt8>
    /// From the stamp to the uncertainty: source and domain of the clock.
    private let clock: UnsafeBufferPointer<UInt8>
    /// For each channel what stands before its value: `,"channels":{"ax":` and `,"ay":`.
    private let prefixes: [UnsafeBufferPointer<UInt8>]
    private let row: UnsafeMutablePointer<UInt8>
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
        var pieces = [RowKeys.clock(domain: clockDomain)]
        for (index, name) in channels.enumerated() {
            var bytes: [UInt8] = []
            bytes.appendText(index > 0 ? "," : ",\"channels\":{")
            bytes.appendJSON(name)
            bytes.append(UInt8(ascii: ":"))
            pieces.append(bytes)
        }
        let size = pieces.reduce(0) { $0 + $1.count }
        texts = .allocate(capacity: size)
        var places: [UnsafeBufferPointer<UInt8>] = []
        var end = texts
        for piece in pieces {
            piece.withUnsafeBufferPointer {
                _ = UnsafeMutableBufferPointer(start: end, count: piece.count).update(from: $0)
            }
            places.append(UnsafeBufferPointer(start: end, count: piece.count))
            end += piece.count
        }
        clock = places[0]
        prefixes = Array(places.dropFirst())
        // Four whole numbers and the keys around them take less than 8 numbers' room.
        row = .allocate(capacity: size + (channels.count + 8) * ShortestDecimal.most)
    }

    deinit {
        texts.deallocate()
        row.deallocate()
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
        var end = row
        end += ShortestDecimal.write(RowKeys.frame, to: end)
        end += ShortestDecimal.write(frame, to: end)
        end += ShortestDecimal.write(RowKeys.capture, to: end)
        end += ShortestDecimal.write(capture.nanoseconds, to: end)
        end += ShortestDecimal.write(clock, to: end)
        end += ShortestDecimal.write(uncertainty.nanoseconds, to: end)
        for index in values.indices {
            end += ShortestDecimal.write(prefixes[index], to: end)
            end += ShortestDecimal.write(values[index], to: end)
            if !values[index].isFinite { nonNumbers += 1 }
        }
        end += ShortestDecimal.write("}", to: end)
        if let device {
            end += ShortestDecimal.write(RowKeys.device, to: end)
            end += ShortestDecimal.write(device.nanoseconds, to: end)
        }
        end += ShortestDecimal.write("}\n", to: end)
        try file.append(UnsafeBufferPointer(start: row, count: end - row))
    }

    /// Hands all rows to the system; they survive this program's death then.
    package func flush() throws { try file.flush() }

    /// Brings all rows to the disk.
    package func sync() throws { try file.sync() }

    package func finish() throws { try file.sync() }
}
