import Episode
import Platform
import Protocol
import TestSupport
import Testing
import Timing

@testable import Coordinator

@Suite("the end of a take that nobody stopped")
struct EndOfHostsTests {
    private let left = HostID(unchecked: "left")
    private let right = HostID(unchecked: "right")

    private func write(_ host: HostID, stop: Int64?, in folder: String) throws {
        try Files.makeFolder("\(folder)/hosts/\(host)")
        var manifest = HostManifest(host: host, role: .follower, streams: [], status: .finished)
        manifest.stop = stop.map { Timestamp(nanoseconds: $0) }
        try manifest.write(to: "\(folder)/hosts/\(host)/manifest.json")
    }

    private func clock(ahead: Int64) -> ClockSeries {
        ClockSeries(
            ClockMapping<HostTime, RigTime>(
                reference: Timestamp(nanoseconds: 0), offset: Interval(nanoseconds: -ahead), skew: 0,
                bound: .microseconds(10), skewBound: 1e-6))
    }

    @Test("it is the latest of the hosts' ends on rig time, whatever their clocks show")
    func latest() throws {
        let place = try TemporaryFolder()
        let folder = place.path
        // left ends at 1.000 s of rig time; right 2 ms later, by a clock that is an hour ahead.
        try write(left, stop: 1_000_000_000, in: folder)
        try write(right, stop: 3_601_002_000_000, in: folder)
        let clocks = [left: clock(ahead: 0), right: clock(ahead: 3_600_000_000_000)]
        #expect(EpisodeSealer.endOfHosts(clocks, folder) == Timestamp(nanoseconds: 1_002_000_000))
        // A host without a clock can't say it.
        #expect(EpisodeSealer.endOfHosts([left: clock(ahead: 0)], folder) == Timestamp(nanoseconds: 1_000_000_000))
    }

    @Test("it stays unknown when no host knows it")
    func unknown() throws {
        let place = try TemporaryFolder()
        let folder = place.path
        try write(left, stop: nil, in: folder)
        #expect(EpisodeSealer.endOfHosts([left: clock(ahead: 0), right: clock(ahead: 0)], folder) == nil)
    }
}
