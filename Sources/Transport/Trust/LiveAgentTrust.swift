internal import Glibc
internal import Platform
internal import Synchronization

/// The trust of a running agent: it sees at once what `downbeat-agent join` wrote beside it.
///
/// Concurrency: the state is in one `Mutex`; the file is read again by whoever finds that it has changed.
package final class LiveAgentTrust: Sendable {
    private struct Stamp: Equatable {
        var inode: UInt64
        var size: Int64
        var changed: Int64
    }

    private let state: Mutex<(trust: AgentTrust, stamp: Stamp?)>
    private let file: String

    package init(home: String) throws {
        file = AgentTrust.file(home)
        let stamp = Self.stamp(file)
        state = Mutex((try AgentTrust.load(home: home), stamp))
    }

    /// As the file says it now; it touches the disk.
    ///
    /// A file that can't be read leaves what was known, and says so in the log.
    package var current: AgentTrust {
        let stamp = Self.stamp(file)
        return state.withLock { state in
            guard stamp != state.stamp else { return state.trust }
            state.stamp = stamp
            do {
                state.trust = try AgentTrust.load(home: state.trust.home)
            } catch {
                Log("trust").error("\(error); going on with the coordinators that were known before")
            }
            return state.trust
        }
    }

    /// For `CommandServer`: the name of the coordinator that a key belongs to.
    package func name(of key: CurveKey) -> String? { current.coordinator(for: key)?.name }

    /// An atomic write gives the file a new inode, or at least a new time.
    private static func stamp(_ path: String) -> Stamp? {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        return Stamp(
            inode: UInt64(status.st_ino), size: Int64(status.st_size),
            changed: Files.modificationTime(path) ?? 0)
    }
}
