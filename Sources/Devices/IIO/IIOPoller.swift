internal import Glibc
internal import Platform

/// Reads a device's raw values one by one from sysfs: for those that have no buffer.
///
/// One owner, one thread.
final class IIOPoller {
    private let files: [OpenAttribute]

    init(_ folder: IIOFolder, channels: [IIOChannel]) throws(IIOFault) {
        var files: [OpenAttribute] = []
        for channel in channels {
            let path = "\(folder.path)/\(channel.attribute)_raw"
            do throws(Errno) {
                let number = try throwingErrno { open(path, O_RDONLY | O_CLOEXEC) }
                files.append(OpenAttribute(FileDescriptor(owning: number)))
            } catch { throw IIOFault(error, "opening \(channel.attribute)_raw") }
        }
        self.files = files
    }

    func read() throws(Errno) -> [Int64] {
        var values: [Int64] = []
        for file in files { values.append(try file.read()) }
        return values
    }
}

/// An attribute that is read again and again.
private final class OpenAttribute {
    private let file: FileDescriptor

    init(_ file: consuming FileDescriptor) { self.file = file }

    func read() throws(Errno) -> Int64 {
        var buffer = [UInt8](repeating: 0, count: 32)
        let number = file.rawValue
        let count = try throwingErrno { pread(number, &buffer, buffer.count, 0) }
        let text = buffer.prefix(max(count, 0)).prefix { $0 > 0x20 }
        guard let value = Int64(String(decoding: text, as: UTF8.self)) else { throw .invalidArgument }
        return value
    }
}
