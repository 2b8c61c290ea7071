internal import Glibc
package import Platform
package import Protocol

/// What an errno of a sound card's call means to a person: cause and cure.
///
/// Pure.
package struct ALSAFault: Sendable, Hashable {
    package enum Operation: String, Sendable, CaseIterable {
        case open = "opening"
        case format = "setting the format"
        case start = "starting"
        case read = "reading"
        case write = "playing"
    }

    package let code: DeviceError.Code
    package let cause: String
    package let cure: String

    /// - Parameters:
    ///   - error: what the call answered.
    ///   - operation: the call.
    ///   - name: the PCM: "hw:CARD=Webcam,DEV=0".
    ///   - cards: the cards that are there, asked for when this one isn't.
    ///   - holder: asked for on EBUSY only.
    package init(
        _ error: Errno, during operation: Operation, name: String, cards: () -> [String] = { [] },
        holder: () -> String = { "another program" }
    ) {
        let card = "sound card '\(name)'"
        switch (error.rawValue, operation) {
        case (EBUSY, _):
            code = .busy
            cause = "\(card) is held by \(holder())"
            cure = "close that program, or keep the desktop's sound server off this card"
        case (EACCES, _), (EPERM, _):
            code = .accessDenied
            cause = "this user may not use \(card)"
            cure = "add the user to the group 'audio' (sudo usermod -aG audio USER) and log in again"
        case (ENOENT, .open), (ENODEV, .open), (ENXIO, .open), (EINVAL, .open):
            let names = cards()
            code = .notFound
            cause = "\(card) isn't attached"
            cure =
                names.isEmpty
                ? "plug it in; no sound card is there" : "plug it in, or name one of \(names.joined(separator: ", "))"
        case (ENODEV, _), (ENXIO, _), (EBADFD, _), (ESHUTDOWN, _):
            code = .disconnected
            cause = "\(card) was unplugged"
            cure = "plug it in again, into a port that holds it well"
        case (EINVAL, .format), (ENOTTY, _):
            code = .unsupported
            cause = "\(card) can't do what was asked (\(error))"
            cure = "choose a format, rate and channels that `downbeat-agent devices` lists"
        case (ENOSPC, _):
            code = .busy
            cause = "the USB bus has no room left for \(card)"
            cure = "put it on another USB controller"
        case (ENOMEM, _):
            code = .inputOutput
            cause = "the kernel has no memory for \(card)"
            cure = "close other programs"
        default:
            code = .inputOutput
            cause = "\(card) fails at \(operation.rawValue) (\(error))"
            cure = "plug it in again, and look at the kernel's log (dmesg) if it happens again"
        }
    }

    package func error(for stream: StreamID) -> DeviceError {
        DeviceError(code, stream: stream, cause: cause, cure: cure)
    }
}
