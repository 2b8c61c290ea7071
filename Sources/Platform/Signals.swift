internal import CLinux
internal import Glibc

/// SIGINT and SIGTERM as values instead of interruptions.
///
/// A handler writes the signal's number to a pipe. A mask and signalfd wouldn't do: the main thread of a Swift program
/// that waits in `dispatchMain`, as each `async` main does, has no signal blocked, and would be killed by the first one.
package enum Signals {
    private static let pipe: (reader: Int32, writer: Int32) = {
        var ends: [Int32] = [-1, -1]
        // Without descriptors nothing can work at all; the first signal then does what it always does.
        guard clinux_pipe_cloexec(&ends) == 0 else { return (-1, -1) }
        for end in ends { _ = fcntl(end, F_SETFL, fcntl(end, F_GETFL) | O_NONBLOCK) }
        for number in [SIGINT, SIGTERM] { _ = clinux_catch_signal(number, ends[1]) }
        return (ends[0], ends[1])
    }()

    /// Catches the signals from here on, so that none of them ends the program; call it first thing.
    ///
    /// SIGPIPE is ignored as well: a reader that went away is an EPIPE, not a death. Programs that this one starts have
    /// their signals as always.
    package static func block() {
        _ = pipe
        signal(SIGPIPE, SIG_IGN)
        // Who starts this program may have blocked them, as Foundation's Process does; that is inherited.
        var set = sigset_t()
        sigemptyset(&set)
        sigaddset(&set, SIGINT)
        sigaddset(&set, SIGTERM)
        pthread_sigmask(SIG_UNBLOCK, &set, nil)
    }

    /// The signals that arrive, each as its number; one stream at a time.
    package static func stream(on loop: EventLoop) throws(SystemError) -> AsyncStream<Int32> {
        let descriptor = pipe.reader
        guard descriptor >= 0 else { throw SystemError(Errno(rawValue: EMFILE), "making a pipe for signals") }
        let (stream, continuation) = AsyncStream.makeStream(of: Int32.self, bufferingPolicy: .bufferingNewest(8))
        try loop.watch(descriptor, for: .readable) { _ in
            var number: UInt8 = 0
            while read(descriptor, &number, 1) == 1 { continuation.yield(Int32(number)) }
        }
        continuation.onTermination = { _ in loop.unwatch(descriptor) }
        return stream
    }
}
