internal import CAV
internal import Platform
internal import Synchronization
internal import Timing

/// What all callers of the libav libraries share.
enum LibAV {
    /// The library's text for an error code.
    static func text(_ code: Int32) -> String {
        var buffer = [CChar](repeating: 0, count: 256)
        av_strerror(code, &buffer, buffer.count)
        return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Sends the library's warnings into our log, once for the program.
    static func prepare() { _ = isPrepared }

    private static let isPrepared: Bool = {
        cav_send_log_to(forwardLibAVLine)
        return true
    }()
}

/// Called by the library on any of its threads.
private func forwardLibAVLine(level: Int32, line: UnsafePointer<CChar>?) {
    guard let line, let verdict = libAVLogGate.withLock({ $0.admit(at: HostClock.now) }) else { return }
    var text = String(cString: line)
    while text.last == "\n" { text.removeLast() }
    let more = verdict.suppressed > 0 ? " (\(verdict.suppressed) lines before it were left out)" : ""
    Log("libav").warning(text + more)
}

private let libAVLogGate = Mutex(LineGate())

/// Lets at most 20 lines through in 10 s: a broken stream may complain for each frame.
struct LineGate {
    struct Admission {
        let suppressed: Int
    }

    private static let limit = 20
    private static let window = Interval.seconds(10)
    private var windowStart: Timestamp<HostTime>?
    private var admitted = 0
    private var suppressed = 0

    /// Nil when the line is to be left out.
    mutating func admit(at now: Timestamp<HostTime>) -> Admission? {
        if let start = windowStart, now - start < Self.window {
            guard admitted < Self.limit else {
                suppressed += 1
                return nil
            }
        } else {
            windowStart = now
            admitted = 0
        }
        admitted += 1
        defer { suppressed = 0 }
        return Admission(suppressed: suppressed)
    }
}
