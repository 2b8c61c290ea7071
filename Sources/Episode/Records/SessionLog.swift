internal import Glibc
package import Platform
package import Timing

/// `session.log`: what happened to the take on this host, one line each, on the disk before `append` returns.
///
/// The keys are SyncField's: `detail`, `kind`, `ts`. SyncField's only kind is `state` with details such as
/// `connected->recording`; ours adds others for events.
package struct SessionLog: ~Copyable {
    private let path: String
    private let file: FileDescriptor

    /// Opens or makes the log; new lines go behind the old ones.
    package init(path: String) throws(SystemError) {
        let file = try FileDescriptor(path: path, flags: O_WRONLY | O_CREAT | O_APPEND)
        try AtomicFile.synchronizeFolder(of: path)
        self.path = path
        self.file = file
    }

    package func append(kind: String, detail: String, at instant: Timestamp<WallTime> = HostClock.wall)
        throws(SystemError)
    {
        var line: [UInt8] = []
        line.appendText("{\"detail\":")
        line.appendJSON(detail)
        line.appendText(",\"kind\":")
        line.appendJSON(kind)
        line.appendText(",\"ts\":")
        line.appendJSON(UTC(instant).isoMilliseconds)
        line.appendText("}\n")
        do throws(Errno) {
            try file.writeAll(line)
            try file.synchronize()
        } catch {
            throw SystemError(error, "writing \(path)")
        }
    }
}
