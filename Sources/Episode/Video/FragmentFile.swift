internal import CAV
internal import Platform

/// The file behind the muxer: what libav writes goes through here, and no further than a whole fragment is trusted.
final class FragmentFile {
    let path: String
    private let file: FileDescriptor
    /// Bytes handed to the system.
    private(set) var written: Int64 = 0
    /// Bytes on the disk that end with a whole fragment.
    private(set) var durable: Int64 = 0
    private(set) var failure: Errno?

    init(path: String) throws(SystemError) {
        self.path = path
        file = try FileDescriptor.new(path)
    }

    /// Called by libav; a failure is kept, since libav may lose it.
    fileprivate func write(_ bytes: UnsafeRawBufferPointer) -> Int32 {
        if let failure { return cav_AVERROR(failure.rawValue) }
        do throws(Errno) {
            try file.writeAll(bytes)
        } catch {
            failure = error
            return cav_AVERROR(error.rawValue)
        }
        written += Int64(bytes.count)
        return Int32(bytes.count)
    }

    /// Brings the fragments so far to the disk.
    func seal() throws(SystemError) {
        try check()
        do throws(Errno) { try file.synchronizeData() } catch {
            failure = error
            throw SystemError(error, "fdatasync of \(path)")
        }
        durable = written
    }

    /// Throws what went wrong while libav wrote, after cutting a torn fragment off.
    func check() throws(SystemError) {
        guard let failure else { return }
        try? file.resize(to: durable)
        throw SystemError(failure, "writing \(path)")
    }

    /// The output of a muxer; it must be freed with `free(_:)`, and this object must outlive it.
    func open() -> UnsafeMutablePointer<AVIOContext>? {
        let size: Int32 = 1 << 16
        guard let buffer = av_malloc(Int(size))?.assumingMemoryBound(to: UInt8.self) else { return nil }
        let this = Unmanaged.passUnretained(self).toOpaque()
        guard let io = avio_alloc_context(buffer, size, 1, this, nil, writeFragmentBytes, nil) else {
            av_free(buffer)
            return nil
        }
        return io
    }

    static func free(_ io: UnsafeMutablePointer<AVIOContext>) {
        av_free(io.pointee.buffer)
        var io: UnsafeMutablePointer<AVIOContext>? = io
        avio_context_free(&io)
    }
}

/// Called by libav with the pointer that `open` gave it.
private func writeFragmentBytes(this: UnsafeMutableRawPointer?, bytes: UnsafeMutablePointer<UInt8>?, count: Int32)
    -> Int32
{
    guard let this, let bytes, count > 0 else { return 0 }
    return Unmanaged<FragmentFile>.fromOpaque(this).takeUnretainedValue()
        .write(UnsafeRawBufferPointer(start: bytes, count: Int(count)))
}
