internal import CLinux
internal import Glibc
package import Timing

/// Another program, run to its end with its output collected.
///
/// Concurrency: blocking; call it on an event loop's thread.
package enum ChildProcess {
    package struct Result: Sendable {
        /// 128 and more when a signal ended it.
        package var status: Int32
        package var output: String
        /// What it said on standard error.
        package var errors: String

        package init(status: Int32, output: String, errors: String) {
            (self.status, self.output, self.errors) = (status, output, errors)
        }
    }

    /// More isn't kept of either output.
    private static let mostOutput = 1 << 20

    /// Runs a program found on PATH; one that takes too long is killed.
    ///
    /// - Throws: `SystemError` when it can't be started, or took too long (ETIMEDOUT).
    ///
    /// The corresponding C function is `posix_spawnp`.
    package static func run(_ words: [String], within limit: Interval) throws(SystemError) -> Result {
        let name = words.first ?? ""
        let what = "running \(name)"
        guard !name.isEmpty, words.allSatisfy({ !$0.utf8.contains(0) }) else {
            throw SystemError(.invalidArgument, what)
        }
        let out = try pipe(what)
        defer { Glibc.close(out.read) }
        let err: (read: Int32, write: Int32)
        do throws(SystemError) { err = try pipe(what) } catch {
            Glibc.close(out.write)
            throw error
        }
        defer { Glibc.close(err.read) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, out.write, 1)
        posix_spawn_file_actions_adddup2(&actions, err.write, 2)
        // The signals that this program has blocked must reach the other one, and a group of its own can be killed whole.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setpgroup(&attributes, 0)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP))
        var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        var pid = pid_t()
        let failed = posix_spawnp(&pid, name, &actions, &attributes, &arguments, environ)
        Glibc.close(out.write)
        Glibc.close(err.write)
        guard failed == 0 else { throw SystemError(Errno(rawValue: failed), what) }
        return try collect(pid, [out.read, err.read], until: HostClock.now + limit, what)
    }

    private static func pipe(_ what: String) throws(SystemError) -> (read: Int32, write: Int32) {
        var ends: [Int32] = [-1, -1]
        guard Glibc.pipe(&ends) == 0 else { throw SystemError(.current, what) }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        return (ends[0], ends[1])
    }

    private static func collect(
        _ pid: pid_t, _ numbers: [Int32], until deadline: Timestamp<HostTime>, _ what: String
    ) throws(SystemError) -> Result {
        var texts: [[UInt8]] = [[], []]
        var open = [true, true]
        var isLate = false
        while open.contains(true) {
            let left = (deadline - HostClock.now).nanoseconds / 1_000_000
            if left <= 0 {
                isLate = true
                break
            }
            var polls = (0..<2).map { pollfd(fd: open[$0] ? numbers[$0] : -1, events: Int16(POLLIN), revents: 0) }
            guard poll(&polls, 2, Int32(clamping: min(left, 1_000))) > 0 else { continue }
            for index in 0..<2 where polls[index].revents != 0 {
                var buffer = [UInt8](repeating: 0, count: 16_384)
                let count = read(numbers[index], &buffer, buffer.count)
                if count > 0 {
                    texts[index] += buffer.prefix(min(count, max(0, mostOutput - texts[index].count)))
                } else if count == 0 || errno != EINTR {
                    open[index] = false
                }
            }
        }
        if isLate { kill(-pid, SIGKILL) }
        var status: Int32 = 0
        while waitpid(pid, &status, 0) == -1 && errno == EINTR {}
        if isLate { throw SystemError(.timedOut, what) }
        let signal = status & 0x7F
        let code = signal == 0 ? (status >> 8) & 0xFF : 128 + signal
        return Result(
            status: code, output: String(decoding: texts[0], as: UTF8.self),
            errors: String(decoding: texts[1], as: UTF8.self))
    }
}
