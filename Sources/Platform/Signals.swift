internal import CLinux
internal import Glibc

/// SIGINT and SIGTERM as values instead of interruptions, by signalfd.
package enum Signals {
    /// Blocks the signals for all threads; call it first thing in the program, before another thread starts.
    ///
    /// SIGPIPE is ignored as well: a reader that went away is an EPIPE, not a death.
    package static func block() {
        var set = mask()
        pthread_sigmask(SIG_BLOCK, &set, nil)
        signal(SIGPIPE, SIG_IGN)
    }

    /// The signals that arrive, each as its number.
    package static func stream(on loop: EventLoop) throws(SystemError) -> AsyncStream<Int32> {
        var set = mask()
        let descriptor = signalfd(-1, &set, Int32(SFD_CLOEXEC | SFD_NONBLOCK))
        guard descriptor >= 0 else { throw SystemError(.current, "signalfd") }
        let (stream, continuation) = AsyncStream.makeStream(of: Int32.self, bufferingPolicy: .bufferingNewest(8))
        try loop.watch(descriptor, for: .readable) { _ in
            var info = signalfd_siginfo()
            while read(descriptor, &info, MemoryLayout.size(ofValue: info)) == MemoryLayout.size(ofValue: info) {
                continuation.yield(Int32(info.ssi_signo))
            }
        }
        continuation.onTermination = { _ in
            loop.unwatch(descriptor)
            close(descriptor)
        }
        return stream
    }

    private static func mask() -> sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        sigaddset(&set, SIGINT)
        sigaddset(&set, SIGTERM)
        return set
    }
}
