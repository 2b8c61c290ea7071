internal import Episode
package import Protocol

/// Whose sound is heard in which video: what the configuration says of it.
///
/// A sync server looks for the chirps in the track of sound of a host's primary video.
package struct SoundChoice: Sendable, Hashable {
    package enum Video: Sendable, Hashable {
        /// The first video of the host.
        case automatic
        case off
        case stream(StreamID)
    }

    package var video = Video.automatic
    /// Nil: `host_audio`, or else the first microphone.
    package var microphone: StreamID?

    package init() {}

    /// Reads `sound_in_video` and `sound_from`.
    init(from reader: inout ConfigReader, streams: [StreamID]) throws(ConfigReader.Invalid) {
        let legal = "'auto', 'off', or the id of a video in 'streams'"
        if let text = try reader.optionalString("sound_in_video", legal: legal) {
            switch text {
            case "auto": video = .automatic
            case "off": video = .off
            default:
                guard let stream = streams.first(where: { $0.rawValue == text }) else {
                    throw reader.invalid("sound_in_video", .string(text), legal: legal)
                }
                video = .stream(stream)
            }
        }
        let source = "the id of a microphone in 'streams'"
        if let text = try reader.optionalString("sound_from", legal: source) {
            guard let stream = streams.first(where: { $0.rawValue == text }) else {
                throw reader.invalid("sound_from", .string(text), legal: source)
            }
            microphone = stream
        }
    }

    /// What the choice comes to among the streams of a take.
    struct Pair {
        /// Nil when there's no sound in a video.
        private(set) var feed: SoundFeed?
        private(set) var video: StreamID?
        /// Why a wish isn't met, a sentence each.
        private(set) var notes: [String] = []

        init(_ choice: SoundChoice, among streams: [StreamDescription]) {
            let videos = streams.filter { $0.kind == .video && $0.video != nil }
            let microphones = streams.filter { $0.kind == .audio && $0.audio != nil }
            let video: StreamDescription?
            switch choice.video {
            case .off: return
            case .automatic: video = videos.first
            case .stream(let id):
                video = videos.first { $0.id == id }
                if video == nil { notes.append("'sound_in_video' names '\(id)', which is no video of this take") }
            }
            let microphone: StreamDescription?
            if let id = choice.microphone {
                microphone = microphones.first { $0.id == id }
                if microphone == nil { notes.append("'sound_from' names '\(id)', which is no microphone of this take") }
            } else {
                microphone = microphones.first { $0.id.rawValue == "host_audio" } ?? microphones.first
            }
            guard let video, let microphone, let format = microphone.audio else { return }
            self.video = video.id
            feed = SoundFeed(source: microphone.id, format: format)
        }

        func involves(_ stream: StreamID) -> Bool { feed != nil && (stream == video || stream == feed?.source) }
    }
}
