internal import Glibc
internal import Platform
package import Protocol

/// Writes interleaved PCM into a WAV file whose header is true at least twice a second; used by one thread.
///
/// Errors are `SystemError`s and `EpisodeError`s with the path.
package final class WAVWriter {
    private let path: String
    private let file: FileDescriptor
    private let header: WAVHeader
    private var dataBytes: Int64 = 0
    private var headerBytes: Int64 = 0
    private var failure: SystemError?
    private var isFinished = false

    /// Makes the file, which must not exist yet, with the header of a file without samples.
    package init(path: String, format: AudioFormat) throws {
        guard (1...256).contains(format.channels), (1...6_144_000).contains(format.rate) else {
            throw EpisodeError(
                path, "sound of \(format.channels) channels at \(format.rate) Hz can't be written",
                cure: "correct channels and rate in the configuration")
        }
        self.path = path
        header = WAVHeader(format)
        file = try FileDescriptor.new(path)
        try write { () throws(Errno) in try file.writeAll(header.bytes(dataBytes: 0), at: 0) }
    }

    /// Sample frames that were given.
    package var frames: Int64 { dataBytes / Int64(header.format.bytesPerFrame) }
    package var bytesWritten: Int64 { Int64(header.length) + dataBytes }

    /// Adds whole sample frames.
    ///
    /// - Throws: `EpisodeError` when the bytes aren't whole sample frames; nothing is written then.
    package func append(_ bytes: [UInt8]) throws {
        if let failure { throw failure }
        guard bytes.count % header.format.bytesPerFrame == 0 else {
            throw EpisodeError(
                path, "\(bytes.count) bytes of sound are no multiple of \(header.format.bytesPerFrame)")
        }
        let end = Int64(header.length) + dataBytes
        try write { () throws(Errno) in try file.writeAll(bytes, at: end) }
        dataBytes += Int64(bytes.count)
        let half = Int64(header.format.rate) * Int64(header.format.bytesPerFrame) / 2
        if dataBytes - headerBytes >= half { try updateHeader() }
    }

    /// Makes the header true and brings all to the disk.
    package func sync() throws {
        if let failure { throw failure }
        try updateHeader()
        try write { () throws(Errno) in try file.synchronizeData() }
    }

    package func finish() throws {
        guard !isFinished else { return }
        isFinished = true
        if let failure { throw failure }
        if dataBytes % 2 == 1 {
            let end = Int64(header.length) + dataBytes
            try write { () throws(Errno) in try file.writeAll([0], at: end) }
        }
        try updateHeader()
        try write { () throws(Errno) in try file.synchronize() }
    }

    private func updateHeader() throws(SystemError) {
        guard headerBytes != dataBytes else { return }
        let bytes = header.bytes(dataBytes: dataBytes)
        try write { () throws(Errno) in try file.writeAll(bytes, at: 0) }
        headerBytes = dataBytes
    }

    /// Runs a call on the file; after a failure the file is what it was, and stays so.
    private func write(_ call: () throws(Errno) -> Void) throws(SystemError) {
        do throws(Errno) { try call() } catch {
            let failure = SystemError(error, "writing \(path)")
            self.failure = failure
            // A full disk may have taken a part of the samples: whole frames with a true header are left.
            try? file.resize(to: Int64(header.length) + dataBytes)
            try? file.writeAll(header.bytes(dataBytes: dataBytes), at: 0)
            throw failure
        }
    }
}
