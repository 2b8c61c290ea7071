package import Protocol
package import Timing

/// The names of the files of an episode on a host: SyncField's.
package enum EpisodeLayout {
    package static let manifest = "manifest.json"
    package static let syncPoint = "sync_point.json"
    package static let sessionLog = "session.log"

    package static func video(_ id: StreamID) -> String { "\(id).mp4" }
    /// The further files of a stream whose format has changed in the take, from 1.
    package static func videoSegment(_ id: StreamID, _ number: Int) -> String {
        "\(id)_seg\(number < 10 ? "0" : "")\(number).mp4"
    }

    package static func audio(_ id: StreamID) -> String { "\(id).wav" }
    package static func sensor(_ id: StreamID) -> String { "\(id).jsonl" }
    package static func timestamps(_ id: StreamID) -> String { "\(id).timestamps.jsonl" }
    package static func pending(_ id: StreamID) -> String { "\(id).pending.json" }

    /// The file with the samples of a stream.
    package static func samples(_ id: StreamID, _ kind: StreamKind) -> String {
        switch kind {
        case .video: video(id)
        case .audio: audio(id)
        case .sensor: sensor(id)
        }
    }

    /// The file with the stamps of a stream's samples; a sensor's rows carry their own.
    package static func stamps(_ id: StreamID, _ kind: StreamKind) -> String {
        kind == .sensor ? sensor(id) : timestamps(id)
    }

    /// A new name for an episode that begins at an instant: `ep_<yyyyMMdd_HHmmss UTC>_<6 hex>`.
    package static func newEpisode(at instant: Timestamp<WallTime>) -> EpisodeID {
        var generator = SystemRandomNumberGenerator()
        let random = UInt32.random(in: 0..<(1 << 24), using: &generator)
        let hex = String(random, radix: 16)
        let suffix = String(repeating: "0", count: 6 - hex.utf8.count) + hex
        return EpisodeID(unchecked: "ep_\(UTC(instant).compact)_\(suffix)")
    }
}
