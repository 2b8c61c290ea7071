internal import Glibc
internal import Platform
internal import Protocol
package import Timing

/// One row of `clock_sync.jsonl`: how a host's clock stood against the rig's at an instant.
package struct ClockSyncRow: Codable, Sendable, Hashable {
    package var host: String
    package var mapping: ClockMapping<RigTime, HostTime>
    /// Of the exchange that the offset comes from, where a single one was used.
    package var delay: Interval?
    /// In words of the estimator: "locked" between exchanges, "holdover" before the first and after the last.
    package var state: String?

    package init(
        host: String, mapping: ClockMapping<RigTime, HostTime>, delay: Interval? = nil, state: String? = nil
    ) {
        self.host = host
        self.mapping = mapping
        self.delay = delay
        self.state = state
    }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        host = try container.decode(String.self, forKey: .host)
        mapping = ClockMapping(
            reference: try container.decode(Timestamp<RigTime>.self, forKey: .rig),
            offset: try container.decode(Interval.self, forKey: .offset),
            skew: try container.decode(Double.self, forKey: .skew),
            bound: try container.decode(Interval.self, forKey: .bound),
            skewBound: try container.decode(Double.self, forKey: .skewBound))
        delay = try container.decodeIfPresent(Interval.self, forKey: .delay)
        state = try container.decodeIfPresent(String.self, forKey: .state)
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(host, forKey: .host)
        try container.encode(mapping.reference, forKey: .rig)
        try container.encode(mapping.map(mapping.reference), forKey: .hostTime)
        try container.encode(mapping.offset, forKey: .offset)
        try container.encode(mapping.skew, forKey: .skew)
        try container.encode(mapping.bound, forKey: .bound)
        try container.encode(mapping.skewBound, forKey: .skewBound)
        try container.encodeIfPresent(delay, forKey: .delay)
        try container.encodeIfPresent(state, forKey: .state)
    }

    private enum CodingKeys: String, CodingKey {
        case host = "host_id"
        case rig = "rig_ns"
        case hostTime = "host_ns"
        case offset = "offset_ns"
        case skew
        case bound = "bound_ns"
        case skewBound = "skew_bound"
        case delay = "delay_ns"
        case state
    }
}

/// `clock_sync.jsonl`: the clocks of all hosts during a take; used by one thread.
///
/// Rows go behind those that are there.
package struct ClockSyncLog: ~Copyable {
    private let path: String
    private let file: FileDescriptor

    package init(path: String) throws {
        let file = try FileDescriptor(path: path, flags: O_WRONLY | O_CREAT | O_APPEND)
        self.path = path
        self.file = file
    }

    /// Writes one whole line.
    package func append(_ row: ClockSyncRow) throws {
        let line = try JSONText.encode(row) + [0x0A]
        do throws(Errno) { try file.writeAll(line) } catch { throw SystemError(error, "writing \(path)") }
    }

    /// Brings all rows to the disk.
    package func sync() throws {
        do throws(Errno) { try file.synchronizeData() } catch { throw SystemError(error, "fdatasync of \(path)") }
    }

    /// The mappings of each host; lines that are none are left out.
    package static func read(_ path: String) throws -> [String: ClockSeries] {
        try rows(path).mapValues { ClockSeries($0.map(\.mapping)) }
    }

    /// The rows of each host in the file's order; lines that are none are left out.
    package static func rows(_ path: String) throws -> [String: [ClockSyncRow]] {
        var rows: [String: [ClockSyncRow]] = [:]
        try LineReader.read(path) { line in
            guard !line.isTooLong, let row = try? JSONText.decode(ClockSyncRow.self, from: Array(line.bytes)),
                ClockSeries.isSane(row.mapping)
            else { return }
            rows[row.host, default: []].append(row)
        }
        return rows
    }
}

/// All that was found of one host's clock in a take; pure.
package struct ClockSeries: Sendable, Hashable {
    private var mappings: [ClockMapping<RigTime, HostTime>]

    package init(_ mappings: [ClockMapping<RigTime, HostTime>]) {
        self.mappings = mappings.filter(Self.isSane).sorted { $0.reference < $1.reference }
    }

    package init(_ mapping: ClockMapping<HostTime, RigTime>) { self.init([mapping.inverse]) }

    package var isEmpty: Bool { mappings.isEmpty }

    /// A host's instant on the rig's clock with the limit of its error: by that mapping which has the least there.
    package func rig(_ instant: Timestamp<HostTime>) -> (time: Timestamp<RigTime>, bound: Interval)? {
        mappings.map(\.inverse).map { ($0.map(instant), $0.bound(at: instant)) }.min { $0.1 < $1.1 }
    }

    /// The mapping from host to rig with the least bound at an instant.
    package func mapping(at instant: Timestamp<HostTime>) -> ClockMapping<HostTime, RigTime>? {
        mappings.map(\.inverse).min { $0.bound(at: instant) < $1.bound(at: instant) }
    }

    /// Numbers from a file may be anything: a clock that runs at another speed by over 1 % is none.
    static func isSane(_ mapping: ClockMapping<RigTime, HostTime>) -> Bool {
        mapping.skew.magnitude < 0.01 && (0..<0.01).contains(mapping.skewBound) && mapping.bound >= .zero
    }
}
