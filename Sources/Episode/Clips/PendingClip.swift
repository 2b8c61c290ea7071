package import Platform
internal import Protocol
package import Timing

/// `<id>.pending.json` and `<id>.pending.tentative.json`: a clip that is still on the camera that took it.
///
/// Written as SyncField Swift does (camelCase); Kotlin's spelling (snake_case) is read too. `bleAckUncertaintyNs` is ours.
/// The tentative one is written when the camera has acknowledged the start, so that a crash loses no clip.
package struct PendingClip: Sendable, Hashable {
    /// What stands for the path when the camera's answer had none.
    package static let unresolved = "unresolved://latest-video"

    package var stream: String
    /// The path on the camera's card; nil when it isn't known.
    package var cameraPath: String?
    /// The camera's identity that stays: our configuration's word, or the address; empty in old files, and then no two
    /// clips are taken for the same camera's.
    package var cameraID: String
    /// "GO 3S 1TEBJJ"; its Wi-Fi is called by it.
    package var cameraName: String
    package var role: String
    /// When the start's acknowledgement was read, host time.
    package var acknowledged: Timestamp<HostTime>?
    /// Half the round trip of the start; the camera began somewhere in between, or later.
    package var uncertainty: Interval?
    package var acknowledgedWall: Timestamp<WallTime>?
    package var stoppedWall: Timestamp<WallTime>?
    package var savedAt: Timestamp<WallTime>?
    package var stopFailure: String?
    package var expectedSegments: Int?
    package var fileSize: Int64?
    package var durationSeconds: Double?
    /// The stop was never written down: the program died in the take.
    package var isTentative = false

    package init(stream: String, cameraID: String, cameraName: String) {
        (self.stream, self.cameraID, self.cameraName) = (stream, cameraID, cameraName)
        role = ""
    }

    package static func path(_ folder: String, _ stream: String) -> String { "\(folder)/\(stream).pending.json" }

    package static func tentativePath(_ folder: String, _ stream: String) -> String {
        "\(folder)/\(stream).pending.tentative.json"
    }

    /// The clips of an episode's folder that are still to come, sorted by stream; what can't be read is told.
    package static func all(in folder: String) throws(SystemError) -> (clips: [PendingClip], problems: [String]) {
        var (clips, problems): ([PendingClip], [String]) = ([], [])
        let names = try Files.list(folder)
        for name in names {
            let isTentative = name.hasSuffix(".pending.tentative.json")
            guard isTentative || name.hasSuffix(".pending.json") else { continue }
            let stream = String(name.dropLast(isTentative ? 23 : 13))
            if isTentative && names.contains("\(stream).pending.json") { continue }
            do {
                let bytes = try Files.read("\(folder)/\(name)", limit: 1 << 20)
                var clip = try PendingClip(reading: bytes, stream: stream)
                clip.isTentative = isTentative
                clips.append(clip)
            } catch {
                problems.append("\(name) can't be read: \(error)")
            }
        }
        return (clips, problems)
    }

    /// Reads either spelling; the stream is the file's name, whatever the text says.
    package init(reading bytes: [UInt8], stream: String) throws {
        let value = try JSONText.decode(JSONValue.self, from: bytes)
        guard value.object != nil else { throw EpisodeError(stream, "no pending clip: it is \(value.kindName)") }
        func text(_ keys: String...) -> String? { keys.lazy.compactMap { value[$0]?.string }.first { !$0.isEmpty } }
        func whole(_ keys: String...) -> Int64? { keys.lazy.compactMap { value[$0]?.integer }.first }
        self.init(
            stream: stream, cameraID: text("bleUuid", "ble_uuid", "deviceUuid", "device_uuid") ?? "",
            cameraName: text("bleName", "ble_name", "deviceName", "device_name") ?? "")
        let uri = text("cameraFileURI", "camera_file_uri")
        cameraPath = uri.flatMap { $0.hasPrefix("/") ? $0 : nil }
        role = text("role") ?? ""
        acknowledged = whole("bleAckMonotonicNs", "ble_ack_monotonic_ns").map { Timestamp(nanoseconds: $0) }
        uncertainty = whole("bleAckUncertaintyNs", "ble_ack_uncertainty_ns").map { .nanoseconds($0) }
        acknowledgedWall = whole("bleAckWallClockMs", "ble_ack_wall_clock_ms").flatMap(Self.wall)
        stoppedWall = whole("stopWallClockMs", "stop_wall_clock_ms").flatMap(Self.wall)
        savedAt = text("savedAt", "saved_at", "sessionStartIso", "session_start_iso").flatMap(UTC.parse)
        stopFailure = text("stopFailureReason", "stop_failure_reason")
        expectedSegments = whole("expectedSegments", "expected_segments")
            .flatMap { (1...1000).contains($0) ? Int($0) : nil }
        fileSize = whole("cameraFileSize", "camera_file_size").flatMap { $0 > 0 ? $0 : nil }
        durationSeconds = (value["cameraDurationSec"] ?? value["camera_duration_sec"])?.double
            .flatMap { $0 > 0 && $0 < 1e6 ? $0 : nil }
        // A tentative file of SyncField's has its start only as text.
        if acknowledgedWall == nil, value["sessionStartIso"] != nil { acknowledgedWall = savedAt }
    }

    private static func wall(_ milliseconds: Int64) -> Timestamp<WallTime>? {
        guard milliseconds > 0, milliseconds < 1 << 53 else { return nil }
        return Timestamp(nanoseconds: Interval.milliseconds(milliseconds).nanoseconds)
    }

    // MARK: Writing

    /// Writes the tentative file, at the start's acknowledgement.
    package func writeTentative(to folder: String) throws {
        var members: [String: JSONValue] = [
            "streamId": .string(stream), "role": .string(role), "deviceUuid": .string(cameraID),
            "deviceName": .string(cameraName), "expectedSetupType": .string("ego_wrist"),
        ]
        members["sessionStartIso"] = acknowledgedWall.map { .string(UTC($0).isoMilliseconds) }
        addAnchor(&members)
        try AtomicFile.write(
            try JSONText.encodePretty(JSONValue.object(members)), to: Self.tentativePath(folder, stream))
    }

    /// Writes the file, at the stop, and then removes the tentative one.
    package func write(to folder: String) throws {
        var members: [String: JSONValue] = [
            "streamId": .string(stream), "role": .string(role), "bleUuid": .string(cameraID),
            "bleName": .string(cameraName), "cameraFileURI": .string(cameraPath ?? Self.unresolved),
        ]
        members["savedAt"] = savedAt.map { .string(UTC($0).isoMilliseconds) }
        members["stopFailureReason"] = stopFailure.map { .string($0) }
        members["stopWallClockMs"] = stoppedWall.map { .integer($0.nanoseconds / 1_000_000) }
        members["expectedSegments"] = expectedSegments.map { .integer(Int64($0)) }
        members["cameraFileSize"] = fileSize.map { .integer($0) }
        members["cameraDurationSec"] = durationSeconds.map { .number($0) }
        addAnchor(&members)
        try AtomicFile.write(try JSONText.encodePretty(JSONValue.object(members)), to: Self.path(folder, stream))
        try Files.remove(Self.tentativePath(folder, stream))
    }

    private func addAnchor(_ members: inout [String: JSONValue]) {
        members["bleAckMonotonicNs"] = acknowledged.map { .integer($0.nanoseconds) }
        members["bleAckUncertaintyNs"] = uncertainty.map { .integer($0.nanoseconds) }
        members["bleAckWallClockMs"] = acknowledgedWall.map { .integer($0.nanoseconds / 1_000_000) }
    }

    /// The clip is here: nothing waits any more.
    package static func remove(_ stream: String, from folder: String) throws(SystemError) {
        try Files.remove(path(folder, stream))
        try Files.remove(tentativePath(folder, stream))
    }
}
