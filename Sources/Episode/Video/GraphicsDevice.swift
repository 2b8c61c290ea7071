internal import CAV
internal import Platform

/// A graphics processor that encodes H.264 by VA-API, and its surfaces for pictures of one size; used by one thread.
final class GraphicsDevice {
    /// The nodes that a program without a screen may open.
    private static let folder = "/dev/dri"

    private let path: String
    let name: String
    private var device: UnsafeMutablePointer<AVBufferRef>?
    private(set) var surfaces: UnsafeMutablePointer<AVBufferRef>?

    /// Opens the first device of the machine that can be opened; `path` is that of the file, for messages.
    init(path: String, width: Int, height: Int) throws {
        LibAV.prepare()
        self.path = path
        let nodes = ((try? Files.list(Self.folder)) ?? []).filter { $0.hasPrefix("renderD") }.map {
            "\(Self.folder)/\($0)"
        }
        guard !nodes.isEmpty else { throw EpisodeError(path, "this machine has no graphics device for VA-API") }
        var failures: [String] = []
        for node in nodes {
            var opened: UnsafeMutablePointer<AVBufferRef>?
            let code = av_hwdevice_ctx_create(&opened, AV_HWDEVICE_TYPE_VAAPI, node, nil, 0)
            guard code >= 0, let opened else {
                failures.append("\(node): \(LibAV.text(code))")
                continue
            }
            guard let surfaces = cav_surfaces(opened, AV_PIX_FMT_VAAPI, Int32(width), Int32(height)) else {
                failures.append("\(node): it has no surfaces of \(width)×\(height)")
                var owned: UnsafeMutablePointer<AVBufferRef>? = opened
                av_buffer_unref(&owned)
                continue
            }
            (device, self.surfaces, name) = (opened, surfaces, node)
            return
        }
        throw EpisodeError(path, "VA-API can't be used: \(failures.joined(separator: "; "))")
    }

    deinit {
        av_buffer_unref(&surfaces)
        av_buffer_unref(&device)
    }

    /// A surface with a copy of a picture; the caller frees it.
    func upload(_ picture: UnsafeMutablePointer<AVFrame>) throws -> UnsafeMutablePointer<AVFrame> {
        guard let frame = av_frame_alloc() else { throw EpisodeError(path, "libavutil has no memory") }
        var code = av_hwframe_get_buffer(surfaces, frame, 0)
        if code >= 0 { code = av_hwframe_transfer_data(frame, picture, 0) }
        guard code >= 0 else {
            var owned: UnsafeMutablePointer<AVFrame>? = frame
            av_frame_free(&owned)
            throw EpisodeError(path, "\(name) takes no picture: \(LibAV.text(code))")
        }
        frame.pointee.color_range = picture.pointee.color_range
        return frame
    }
}
