package import Protocol
package import Timing

/// `<stream>.timestamps.jsonl`: one line for each frame, in the order in which frames are written; used by one thread.
///
/// All documented keys of SyncField are in each line. Errors are `SystemError`s with the path.
package final class TimestampLog {
    private let file: LineFile
    private let clock: [UInt8]

    /// Makes the file, which must not exist yet.
    ///
    /// `clockDomain` is the host's name: equal for all streams of a host.
    package init(path: String, clockDomain: String) throws {
        file = try LineFile(path: path)
        clock = RowKeys.clock(domain: clockDomain)
    }

    /// Rows that were given.
    package var rows: Int64 { file.lines }
    package var bytesWritten: Int64 { file.bytes }

    /// Adds one row.
    ///
    /// `frame` is the number of the frame in the media file, from 0; for audio the number of sample frames before it.
    /// `extra` are further keys of the row; they must not be documented ones.
    package func append(
        frame: Int64, capture: Timestamp<HostTime>, uncertainty: Interval, device: Timestamp<DeviceTime>?,
        extra: [(String, JSONValue)] = []
    ) throws {
        try file.append { row in
            RowKeys.begin(&row, frame: frame, capture: capture, clock: clock, uncertainty: uncertainty)
            for (key, value) in extra {
                row.append(UInt8(ascii: ","))
                row.appendJSON(key)
                row.append(UInt8(ascii: ":"))
                row.appendJSON(value)
            }
            RowKeys.end(&row, device: device)
        }
    }

    /// Hands all rows to the system; they survive this program's death then.
    package func flush() throws { try file.flush() }

    /// Brings all rows to the disk.
    package func sync() throws { try file.sync() }

    package func finish() throws { try file.sync() }
}

/// The keys that a frame's and a sensor's row have in common.
enum RowKeys {
    static var frame: StaticString { "{\"frame_number\":" }
    static var capture: StaticString { ",\"capture_ns\":" }
    static var device: StaticString { ",\"device_timestamp_ns\":" }

    static func clock(domain: String) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.appendText(",\"clock_source\":\"host_monotonic\",\"clock_domain\":")
        bytes.appendJSON(domain)
        bytes.appendText(",\"uncertainty_ns\":")
        return bytes
    }

    static func begin(
        _ row: inout [UInt8], frame: Int64, capture: Timestamp<HostTime>, clock: [UInt8], uncertainty: Interval
    ) {
        row.appendText(self.frame)
        row.appendJSON(frame)
        row.appendText(self.capture)
        row.appendJSON(capture.nanoseconds)
        row.append(contentsOf: clock)
        row.appendJSON(uncertainty.nanoseconds)
    }

    static func end(_ row: inout [UInt8], device: Timestamp<DeviceTime>?) {
        if let device {
            row.appendText(self.device)
            row.appendJSON(device.nanoseconds)
        }
        row.appendText("}\n")
    }
}
