internal import Devices
internal import Episode
internal import Timing

extension FuzzTarget {
    /// What a wrist camera says, and what is read of its clips.
    static let cameras = [
        FuzzTarget(name: "camera") { bytes in
            var talk = CameraConversation()
            _ = talk.request(.start, patience: .seconds(6), at: Timestamp(nanoseconds: 0))
            _ = talk.request(.stop, patience: .seconds(6), at: Timestamp(nanoseconds: 0))
            for piece in pieces(bytes) {
                for case .answer(_, .success(let reply)) in talk.receive(piece, at: Timestamp(nanoseconds: 1)) {
                    _ = CameraReplies.clipPath(reply.body)
                    _ = CameraReplies.capture(reply.body)
                    _ = CameraReplies.battery(reply.body)
                    _ = CameraAuthorization(check: reply.body)
                }
            }
            demand(talk.tick(at: Timestamp(nanoseconds: .max)).count <= 2, "each request is answered once")
        },
        FuzzTarget(name: "camera-message") { bytes in
            if let frame = CameraFrame(.toCamera, .message, bytes).bytes {
                var reader = CameraFrameReader()
                demand(reader.take(frame).first?.inside == bytes, "a frame reads back")
            }
            if let message = CameraMessage(inside: bytes) {
                demand(CameraMessage(inside: message.inside) == message, "a message reads back")
            }
            if let path = CameraReplies.clipPath(bytes) {
                demand(path.hasPrefix("/DCIM/") && !path.contains(".."), "a clip's path stays on the card")
            }
        },
        FuzzTarget(name: "clip") { bytes in
            _ = ClipName(String(decoding: bytes, as: UTF8.self))
            guard let clip = try? PendingClip(reading: bytes, stream: "wrist") else { return }
            var chooser = ClipChooser(zone: .seconds(3600))
            let files = ["VID_20260401_120000_00_001.mp4", "VID_20260401_121800_00_002.mp4"]
            let wanted = [ClipChooser.Wanted(clip, id: "a"), ClipChooser.Wanted(clip, id: "b")]
            let choices = chooser.choose(wanted, among: files.map { ClipChooser.File(path: $0, size: 1) })
            let given = choices.values.flatMap { choice -> [ClipChooser.File] in
                guard case .files(let files, _) = choice else { return [] }
                return files
            }
            demand(Set(given).count == given.count, "no two clips get one file")
        },
    ]
}
