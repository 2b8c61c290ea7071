/// What kind of data a stream is made of.
package enum StreamKind: String, Codable, Sendable, CaseIterable {
    case video, audio, sensor
}

/// What a stream can do, in SyncField's words.
package struct StreamCapabilities: Codable, Sendable, Hashable {
    package var producesFile: Bool
    package var providesAudioTrack: Bool
    package var requiresIngest: Bool
    package var supportsPreciseTimestamps: Bool

    package init(
        producesFile: Bool, providesAudioTrack: Bool = false, requiresIngest: Bool = false,
        supportsPreciseTimestamps: Bool = true
    ) {
        self.producesFile = producesFile
        self.providesAudioTrack = providesAudioTrack
        self.requiresIngest = requiresIngest
        self.supportsPreciseTimestamps = supportsPreciseTimestamps
    }

    private enum CodingKeys: String, CodingKey {
        case producesFile = "produces_file"
        case providesAudioTrack = "provides_audio_track"
        case requiresIngest = "requires_ingest"
        case supportsPreciseTimestamps = "supports_precise_timestamps"
    }
}

/// What one stream delivers, as its device says it.
package struct StreamDescription: Codable, Sendable, Hashable {
    package var id: StreamID
    package var kind: StreamKind
    /// The kind of device in the configuration, such as `v4l2`, `alsa` or `emulated-camera`.
    package var deviceKind: String
    /// A stable identity of the hardware: serial or port path, never an index.
    package var deviceIdentity: String
    /// For a person.
    package var label: String
    /// Samples a second: frames for video, sample frames for audio, rows for a sensor.
    ///
    /// Nil when irregular.
    package var nominalRate: Double?
    package var video: VideoFormat?
    package var audio: AudioFormat?
    package var sensor: SensorFormat?
    package var capabilities: StreamCapabilities
    /// Where a stamp comes from, in words: "driver, CLOCK_MONOTONIC, end of frame".
    package var timestampSource: String
    /// How lost samples are told; nil where the kind of device has only one way.
    package var lossMethod: LossMethod?
    /// What was asked of the device and what it made of it; nil when it takes no settings.
    package var settings: [StreamSetting]?
    /// Sentences on what isn't as it was asked for, or may go wrong: for `downbeat check`.
    package var findings: [String]?

    package init(
        id: StreamID, kind: StreamKind, deviceKind: String, deviceIdentity: String, label: String,
        nominalRate: Double?, video: VideoFormat? = nil, audio: AudioFormat? = nil, sensor: SensorFormat? = nil,
        capabilities: StreamCapabilities, timestampSource: String
    ) {
        self.id = id
        self.kind = kind
        self.deviceKind = deviceKind
        self.deviceIdentity = deviceIdentity
        self.label = label
        self.nominalRate = nominalRate
        self.video = video
        self.audio = audio
        self.sensor = sensor
        self.capabilities = capabilities
        self.timestampSource = timestampSource
    }

    private enum CodingKeys: String, CodingKey {
        case id, kind, label, video, audio, sensor, capabilities
        case deviceKind = "device_kind"
        case deviceIdentity = "device_identity"
        case nominalRate = "nominal_rate"
        case timestampSource = "timestamp_source"
        case lossMethod = "loss_method"
        case settings, findings
    }
}

/// How it is told that samples were lost.
package enum LossMethod: String, Codable, Sendable, CaseIterable {
    /// By the driver's or the device's counter: exact.
    case sequence
    /// By the distance of two samples, where there is no counter: good to a sample.
    case interval
}

/// One setting of a device: asked against got.
package struct StreamSetting: Codable, Sendable, Hashable {
    package var name: String
    /// Nil: nothing was asked, this is how it is.
    package var asked: String?
    /// Nil: it can't be read back.
    package var got: String?

    package init(_ name: String, asked: String?, got: String?) {
        self.name = name
        self.asked = asked
        self.got = got
    }

    /// Whether the device has made something else of it.
    package var differs: Bool { asked != nil && asked != got }
}

/// The shape of a video stream.
package struct VideoFormat: Codable, Sendable, Hashable {
    /// What the bytes of a frame are.
    package enum Encoding: String, Codable, Sendable, CaseIterable {
        /// Packed 4:2:2, two bytes a pixel, rows of `bytesPerLine`.
        case yuyv
        case nv12
        case yuv420p
        case mjpeg
        case h264
        case hevc
    }

    package var encoding: Encoding
    package var width: Int
    package var height: Int
    /// Of the first plane; 0 for compressed data.
    package var bytesPerLine: Int

    package init(encoding: Encoding, width: Int, height: Int, bytesPerLine: Int = 0) {
        self.encoding = encoding
        self.width = width
        self.height = height
        self.bytesPerLine = bytesPerLine
    }

    private enum CodingKeys: String, CodingKey {
        case encoding, width, height
        case bytesPerLine = "bytes_per_line"
    }
}

/// The shape of an audio stream: interleaved little-endian PCM.
package struct AudioFormat: Codable, Sendable, Hashable {
    package enum Encoding: String, Codable, Sendable, CaseIterable {
        case s16 = "s16le"
        case s24 = "s24le3"
        case s32 = "s32le"
        case f32 = "f32le"

        package var bytes: Int {
            switch self {
            case .s16: 2
            case .s24: 3
            case .s32, .f32: 4
            }
        }
    }

    package var encoding: Encoding
    /// Sample frames a second, nominal.
    package var rate: Int
    package var channels: Int

    package init(encoding: Encoding, rate: Int, channels: Int) {
        self.encoding = encoding
        self.rate = rate
        self.channels = channels
    }

    /// Bytes of one sample frame.
    package var bytesPerFrame: Int { encoding.bytes * channels }
}

/// The channels of a sensor stream, in the order of a row's values.
package struct SensorFormat: Codable, Sendable, Hashable {
    package struct Channel: Codable, Sendable, Hashable {
        package var name: String
        /// SI where there is one: "m/s^2", "rad/s", "count".
        package var unit: String

        package init(name: String, unit: String) {
            self.name = name
            self.unit = unit
        }
    }

    package var channels: [Channel]

    package init(channels: [Channel]) { self.channels = channels }
}
