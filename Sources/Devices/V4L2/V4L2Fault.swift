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

    /// What is asked for only where an errno needs it.
    package struct Facts {
        /// The processes that hold the node, in words.
        package var holder: () -> String = { "another program" }
        /// The group that may use the node.
        package var group: () -> String = { "video" }
        /// What was asked of its USB bus, in words.
        package var bandwidth: () -> String? = { nil }

        package init() {}
    }

    package let code: DeviceError.Code
    package let cause: String
    package let cure: String
    /// What a running take makes of it.
    package let trouble: CameraSupervisor.Trouble

    /// - Parameters:
    ///   - error: what the call answered.
    ///   - operation: the call.
    ///   - path: the node.
    ///   - name: what a person calls the camera; the path when nothing better is known.
    ///   - facts: each is asked for by one errno only.
    package init(
        _ error: Errno, during operation: Operation, path: String, name: String? = nil, facts: Facts = Facts()
    ) {
        let camera = name.map { "camera '\($0)' (\(path))" } ?? "camera \(path)"
        var trouble = CameraSupervisor.Trouble.broken
        switch (error.rawValue, operation) {
        case (EBUSY, _):
            code = .busy
            cause = "\(camera) is held by \(facts.holder())"
            cure = "close that program"
            trouble = .held
        case (EACCES, _), (EPERM, _):
            let group = facts.group()
            code = .accessDenied
            cause = "this user may not use \(camera), which is of the group '\(group)'"
            cure = "add the user to the group '\(group)' (sudo usermod -aG \(group) USER) and log in again"
            trouble = .held
        case (ENOENT, .open), (ENODEV, .open), (ENXIO, .open):
            code = .notFound
            cause = "\(camera) isn't attached"
            cure = "plug it in"
            trouble = .gone
        case (ENODEV, _), (ENXIO, _), (ESHUTDOWN, _), (ENOENT, .dequeue), (ENOENT, .queue):
            code = .disconnected
            cause = "\(camera) was unplugged"
            cure = "plug it in again, into a port that holds it well"
            trouble = .gone
        case (ENOSPC, _):
            code = .busy
            let asked = facts.bandwidth().map { ": \($0)" } ?? ""
            cause = "the USB bus has no room left for \(camera)\(asked)"
            cure = "put it on another USB controller, or ask for a smaller size, a lower rate or mjpeg"
        case (ENOMEM, _), (ENOBUFS, _):
            code = .inputOutput
            cause = "the kernel has no memory for the buffers of \(camera)"
            cure = "ask for a smaller size, or close other programs"
        case (ENOLINK, _), (ENOLCK, _):
            code = .notFound
            cause = "\(camera) has no signal at its input (\(error))"
            cure = "switch on what is connected to it, and see that its cable holds"
        case (EPROTO, _), (EILSEQ, _), (EOVERFLOW, _), (EREMOTEIO, _), (EPIPE, _), (EIO, .dequeue), (EIO, .streamOn),
            (ETIME, _), (ECOMM, _):
            code = .inputOutput
            cause = "\(camera) broke off its stream at \(operation.rawValue) (\(error))"
            cure = "plug it in again, and use a shorter cable or a hub with its own power if it happens again"
        case (EINVAL, .format), (EINVAL, .rate), (EINVAL, .buffers), (EINVAL, .streamOn), (ENOTTY, _), (ENOTSUP, _),
            (ENOSYS, _), (ERANGE, _):
            code = .unsupported
            cause = "\(camera) refuses \(operation.rawValue) (\(error))"
            cure = "choose a size and format that `downbeat-agent devices` lists"
        case (EMFILE, .open), (ENFILE, .open):
            code = .inputOutput
            cause = "\(camera) can't be opened, since too many files are open (\(error))"
            cure = "raise the limit (ulimit -n, LimitNOFILE in the unit)"
        case (ETIMEDOUT, _):
            code = .timedOut
            cause = "\(camera) doesn't answer \(operation.rawValue)"
            cure = "plug it in again"
        default:
            code = .inputOutput
            cause = "\(camera) fails at \(operation.rawValue) (\(error))"
            cure = "plug it in again, and look at the kernel's log (dmesg) if it happens again"
        }
        self.trouble = trouble
    }

    package func error(for stream: StreamID) -> DeviceError {
        DeviceError(code, stream: stream, cause: cause, cure: cure)
    }
}

/// Which group may use a node.
enum NodeGroup {
    /// "video" where it can't be told, as Debian has it.
    static func name(of path: String) -> String {
        var status = stat()
        guard stat(path, &status) == 0, let group = getgrgid(status.st_gid), let name = group.pointee.gr_name else {
            return "video"
        }
        return String(cString: name)
    }
}
