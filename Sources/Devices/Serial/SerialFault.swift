internal import Platform
internal import Protocol

/// A system error of a serial line, in words for a person.
enum SerialFault {
    static func error(_ error: Errno, node: String, _ baud: UInt32, for stream: StreamID) -> DeviceError {
        let (code, cause, cure): (DeviceError.Code, String, String) =
            switch error {
            case .noSuchFile, .noDevice:
                (.notFound, "there is no serial line \(node)", "plug it in, or see `downbeat-agent devices`")
            case .busy:
                (.busy, "\(node) is held by \(DeviceHolder.words(for: node))", "close that program")
            case .accessDenied, .notPermitted:
                (.accessDenied, "\(node) can't be opened: \(error)", "add the user to the group 'dialout'")
            case Errno(rawValue: 34):  // ERANGE
                (.unsupported, "\(node) can't do \(baud) baud", "set 'baud' to a rate of its chip")
            case Errno(rawValue: 25), .invalidArgument:  // ENOTTY
                (.unsupported, "\(node) is no serial line", "name a terminal, such as one below /dev/serial/by-id")
            default: (.inputOutput, "\(node) doesn't work: \(error)", "plug it in anew")
            }
        return DeviceError(code, stream: stream, cause: cause, cure: cure)
    }
}
