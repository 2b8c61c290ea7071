internal import Glibc
package import Platform
package import Protocol

/// What an errno of a camera's call means to a person: cause and cure.
///
/// Pure.
package struct V4L2Fault: Sendable, Hashable {
    package enum Operation: String, Sendable, CaseIterable {
        case open = "opening"
        case capability = "VIDIOC_QUERYCAP"
        case format = "VIDIOC_S_FMT"
        case rate = "VIDIOC_S_PARM"
        case buffers = "VIDIOC_REQBUFS"
        case queue = "VIDIOC_QBUF"
        case streamOn = "VIDIOC_STREAMON"
        case dequeue = "VIDIOC_DQBUF"
    }

    package let code: DeviceError.Code
    package let cause: String
    package let cure: String

    /// - Parameters:
    ///   - error: what the call answered.
    ///   - operation: the call.
    ///   - path: the node.
    ///   - name: what a person calls the camera; the path when nothing better is known.
    ///   - demand: megabytes a second that the stream needs of its bus; nil when unknown.
    ///   - holder: asked for on EBUSY only.
    package init(
        _ error: Errno, during operation: Operation, path: String, name: String? = nil, demand: Double? = nil,
        holder: () -> String = { "another program" }
    ) {
        let camera = name.map { "camera '\($0)' (\(path))" } ?? "camera \(path)"
        switch (error.rawValue, operation) {
        case (EBUSY, _):
            code = .busy
            cause = "\(camera) is held by \(holder())"
            cure = "close that program"
        case (EACCES, _), (EPERM, _):
            code = .accessDenied
            cause = "this user may not use \(camera)"
            cure = "add the user to the group 'video' (sudo usermod -aG video USER) and log in again"
        case (ENOENT, .open), (ENODEV, .open), (ENXIO, .open):
            code = .notFound
            cause = "\(camera) isn't attached"
            cure = "plug it in"
        case (ENODEV, _), (ENXIO, _), (ESHUTDOWN, _):
            code = .disconnected
            cause = "\(camera) was unplugged"
            cure = "plug it in again, into a port that holds it well"
        case (ENOSPC, _):
            let need = demand.map { " of about \(Int($0.rounded(.up))) MB/s" } ?? ""
            code = .busy
            cause = "the USB bus has no room left for \(camera)\(need)"
            cure = "put it on another USB controller, or ask for a smaller size, a lower rate or mjpeg"
        case (ENOMEM, _):
            code = .inputOutput
            cause = "the kernel has no memory for the buffers of \(camera)"
            cure = "ask for a smaller size, or close other programs"
        case (EIO, .dequeue), (EPROTO, _), (EPIPE, _):
            code = .inputOutput
            cause = "\(camera) broke off its stream (\(error))"
            cure = "plug it in again, and use a shorter cable or a hub with its own power if it happens again"
        case (EINVAL, .format), (EINVAL, .rate), (EINVAL, .buffers), (ENOTTY, _):
            code = .unsupported
            cause = "\(camera) refuses \(operation.rawValue) (\(error))"
            cure = "choose a size and format that `downbeat-agent devices` lists"
        case (ETIMEDOUT, _):
            code = .timedOut
            cause = "\(camera) doesn't answer \(operation.rawValue)"
            cure = "plug it in again"
        default:
            code = .inputOutput
            cause = "\(camera) fails at \(operation.rawValue) (\(error))"
            cure = "plug it in again, and look at the kernel's log (dmesg) if it happens again"
        }
    }

    package func error(for stream: StreamID) -> DeviceError {
        DeviceError(code, stream: stream, cause: cause, cure: cure)
    }
}
