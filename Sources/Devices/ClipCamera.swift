package import Timing

/// A camera that records by itself: it delivers no samples in the take, and its clip comes home at ingest.
///
/// Beside the life of a `CaptureDevice`: `startClip` when the take is committed, so that the clip begins before T0;
/// `stopClip` after T1.
package protocol ClipCamera: CaptureDevice {
    var clips: ClipAccess { get }

    /// Makes the camera record; gives back when it said that it does. Throws `DeviceError`.
    func startClip() async throws -> ClipStart

    /// Ends the recording, with all retries; what failed is in the result.
    func stopClip() async -> ClipStop

    /// Says that the camera may still record a take in which this program died: the next `open` ends that recording.
    func expectStrayClip() async

    /// Ends a recording in which this program died; what is known of it, nil when the camera records nothing or isn't there.
    func endStrayClip() async -> ClipStop?

    /// Keeps the camera awake while clips of others are fetched, until `close`.
    func keepAwake() async

    /// The host uses this camera's Wi-Fi, another one's, or none's.
    func wifi(_ use: CameraLinkMachine.WiFi) async
}

/// The anchor of a clip.
package struct ClipStart: Sendable, Hashable {
    /// When the acknowledgement was read.
    package var acknowledged: Timestamp<HostTime>
    /// Half the round trip.
    ///
    /// The camera was told in between; when its first frame follows it doesn't say.
    package var uncertainty: Interval
    package var wall: Timestamp<WallTime>
    /// What stays the same over sessions, and the name that its Wi-Fi is called by.
    package var cameraID: String
    package var cameraName: String

    package init(
        acknowledged: Timestamp<HostTime>, uncertainty: Interval, wall: Timestamp<WallTime>, cameraID: String,
        cameraName: String
    ) {
        (self.acknowledged, self.uncertainty, self.wall) = (acknowledged, uncertainty, wall)
        (self.cameraID, self.cameraName) = (cameraID, cameraName)
    }
}

/// What is known of a clip at its end.
package struct ClipStop: Sendable, Hashable {
    /// Where it lies on the camera's card; nil when the camera didn't say.
    package var path: String?
    package var wall: Timestamp<WallTime>
    /// Why the camera couldn't be told to stop.
    package var failure: String?

    package init(path: String? = nil, wall: Timestamp<WallTime>, failure: String? = nil) {
        (self.path, self.wall, self.failure) = (path, wall, failure)
    }
}

/// How the clips of a camera come home.
package struct ClipAccess: Sendable, Hashable {
    package enum Way: String, Sendable, Hashable, CaseIterable {
        /// The camera's card, mounted as a disk.
        case usb
        /// The camera's own network.
        case wifi
    }

    package static let standardPassword = "88888888"

    package var ways: [Way] = [.usb, .wifi]
    /// Below these folders a card is looked for, beside what the kernel says is mounted from USB.
    package var mounts: [String] = []
    package var role = ""
    /// Nil: `<name>.OSC`.
    package var network: String?
    package var password = Self.standardPassword
    /// Nil: the first Wi-Fi adapter.
    package var interface: String?
    package var address = "192.168.42.1"
    /// Tried in turn.
    package var ports: [UInt16] = [80, 6666, 8080]

    package init() {}

    package func network(ofCamera name: String) -> String { network ?? "\(name).OSC" }
}
