internal import Foundation
internal import Platform
internal import Protocol
internal import SyncServer
internal import TestSupport
internal import Timing

@testable internal import Coordinator

/// A home with one sealed episode of two hosts, and a real sync server.
final class UploadFixture: Sendable {
    let folder: TemporaryFolder
    let episodeID: String

    var home: String { "\(folder.path)/home" }
    var episode: String { "\(home)/sessions/morning/\(episodeID)" }
    var store: String { "\(folder.path)/store" }

    init(episodeID: String = "ep_20260411_152930_a1b2c3") throws {
        folder = try TemporaryFolder()
        self.episodeID = episodeID
        for place in ["data", "timestamps", "hosts/main lab", "hosts/b"] { try Files.makeFolder("\(episode)/\(place)") }
        try write("data/main lab.cam.mp4", "the video of the lab")
        try write("data/b.cam.mp4", "the video of b")
        try write("timestamps/main lab.cam.timestamps.jsonl", rows((0..<20).map { 1_000_000_000 + $0 * 50_000_000 }))
        try write("timestamps/b.cam.timestamps.jsonl", rows((0..<20).map { 5_001_000_000 + $0 * 50_000_000 }))
        try write("timestamps/b.imu.jsonl", rows((0..<200).map { 5_000_000_000 + $0 * 5_000_000 }))
        // Host b's clock is 4 s ahead of the lab's.
        try write(
            "clock_sync.jsonl",
            "{\"host_id\":\"main lab\",\"rig_ns\":1000000000,\"offset_ns\":0,\"skew\":0,\"bound_ns\":1000}\n"
                + "{\"host_id\":\"b\",\"rig_ns\":1000000000,\"offset_ns\":4000000000,\"skew\":0,\"bound_ns\":1000}\n"
        )
        for host in ["main lab", "b"] { try write("hosts/\(host)/sync_point.json", "{\"host_id\":\"\(host)\"}") }
        try write("manifest.json", "{\"state\":\"sealed\"}")
        try write("verdict.json", "{\"verdict\":\"green\"}")
        try write(
            "sync_request.json",
            """
            {"hosts":[
              {"host_id":"main lab","streams":[
                {"stream_id":"main lab.cam","path":"/data/main lab.cam.mp4","is_primary":true}]},
              {"host_id":"b","streams":[
                {"stream_id":"b.cam","path":"/data/b.cam.mp4","is_primary":false},
                {"stream_id":"b.imu","stream_type":"sensor"}]}],
             "timestamps_dir":"/timestamps"}
            """)
        for place in ["data", "timestamps"] { try Files.makeFolder("\(folder.path)/\(place)") }
    }

    func write(_ name: String, _ text: String) throws { try AtomicFile.write(text, to: "\(episode)/\(name)") }

    private func rows(_ times: [Int64]) -> String {
        times.enumerated().map { "{\"frame_number\":\($0),\"capture_ns\":\($1)}\n" }.joined()
    }

    func server(port: UInt16 = 0, _ change: (inout SyncService.Options) -> Void = { _ in }) throws -> SyncService {
        var options = SyncService.Options(
            port: port, data: "\(folder.path)/data", timestamps: "\(folder.path)/timestamps", store: store)
        change(&options)
        return try SyncService(options)
    }

    var jobs: [String] { get throws { try Files.list("\(store)/jobs") } }

    func uploader(_ service: SyncService, queue: UploadQueue? = nil) -> EpisodeUploader {
        uploader("http://127.0.0.1:\(service.port)/", queue: queue)
    }

    func uploader(_ url: String, queue: UploadQueue? = nil) -> EpisodeUploader {
        var policy = UploadPolicy()
        policy.maximumAttempts = 3
        policy.firstDelay = .milliseconds(1)
        policy.firstPoll = .milliseconds(1)
        policy.longestPoll = .milliseconds(20)
        return EpisodeUploader(queue: queue ?? UploadQueue(home: home), server: url, policy: policy)
    }

    func sealed() throws -> SealedEpisode { try SealedEpisode(folder: episode) }
}
