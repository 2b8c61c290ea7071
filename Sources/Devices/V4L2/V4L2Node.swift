internal import CV4L
internal import Glibc
package import Platform
internal import Timing

/// An open capture node of the kernel, by plain ioctls, without waiting.
///
/// Concurrency: owned and used by one thread, the camera's event loop.
package final class V4L2Node: V4L2Port {
    private static let type = V4L2_BUF_TYPE_VIDEO_CAPTURE.rawValue
    private let node: Int32
    private var mapped: [UnsafeRawBufferPointer] = []
    private let pool = FramePool()
    private var isOpen = true

    /// The corresponding C function is `open`.
    package init(path: String) throws(Errno) {
        node = try throwingErrno { open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC) }
    }

    deinit { close() }

    package var descriptor: Int32 { node }

    package func capability() throws(Errno) -> V4L2Capability {
        var answer = v4l2_capability()
        try control(cv4l_VIDIOC_QUERYCAP, &answer)
        let own = answer.capabilities & UInt32(V4L2_CAP_DEVICE_CAPS) != 0
        return V4L2Capability(
            driver: Self.text(answer.driver), card: Self.text(answer.card), bus: Self.text(answer.bus_info),
            flags: own ? answer.device_caps : answer.capabilities)
    }

    package func offers() -> [V4L2Offer] {
        // A driver that never ends its list must not hang the program.
        (0..<256).lazy.map { self.offer($0) }.prefix { $0 != nil }.compactMap { $0 }
    }

    package func setPicture(_ wanted: V4L2Picture) throws(Errno) -> V4L2Picture {
        var format = v4l2_format()
        format.type = Self.type
        // What isn't set here (colours, field order) stays as the driver has it.
        try control(cv4l_VIDIOC_G_FMT, &format)
        format.fmt.pix.width = UInt32(clamping: wanted.width)
        format.fmt.pix.height = UInt32(clamping: wanted.height)
        format.fmt.pix.pixelformat = wanted.fourCC.rawValue
        format.fmt.pix.bytesperline = 0
        format.fmt.pix.sizeimage = 0
        try control(cv4l_VIDIOC_S_FMT, &format)
        let pix = format.fmt.pix
        return V4L2Picture(
            fourCC: FourCC(rawValue: pix.pixelformat), width: Int(pix.width), height: Int(pix.height),
            bytesPerLine: Int(pix.bytesperline))
    }

    package func setRate(_ rate: Double) throws(Errno) -> Double? {
        let interval = FrameInterval(rate: rate)
        var parameters = v4l2_streamparm()
        parameters.type = Self.type
        parameters.parm.capture.timeperframe.numerator = interval.numerator
        parameters.parm.capture.timeperframe.denominator = interval.denominator
        do throws(Errno) {
            try control(cv4l_VIDIOC_S_PARM, &parameters)
        } catch {
            if error == .invalidArgument || error == Errno(rawValue: ENOTTY) { return nil }
            throw error
        }
        let answer = parameters.parm.capture
        guard answer.capability & UInt32(V4L2_CAP_TIMEPERFRAME) != 0 else { return nil }
        return FrameInterval(answer.timeperframe.numerator, answer.timeperframe.denominator).rate
    }

    package func mapBuffers(_ count: Int) throws(Errno) -> (count: Int, flags: UInt32) {
        unmap()
        var request = v4l2_requestbuffers()
        request.type = Self.type
        request.memory = V4L2_MEMORY_MMAP.rawValue
        request.count = UInt32(clamping: count)
        try control(cv4l_VIDIOC_REQBUFS, &request)
        var flags: UInt32 = 0
        for index in 0..<Int(request.count) {
            var buffer = Self.buffer(index)
            try control(cv4l_VIDIOC_QUERYBUF, &buffer)
            if index == 0 { flags = buffer.flags }
            let length = Int(buffer.length)
            let start = mmap(nil, length, PROT_READ | PROT_WRITE, MAP_SHARED, node, Int(buffer.m.offset))
            guard let start, start != MAP_FAILED else { throw Errno.current }
            mapped.append(UnsafeRawBufferPointer(start: start, count: length))
        }
        return (mapped.count, flags)
    }

    package func queue(_ index: Int) throws(Errno) {
        var buffer = Self.buffer(index)
        try control(cv4l_VIDIOC_QBUF, &buffer)
    }

    package func dequeue() throws(Errno) -> V4L2Filled? {
        var buffer = Self.buffer(0)
        do throws(Errno) {
            try control(cv4l_VIDIOC_DQBUF, &buffer)
        } catch {
            if error == .again { return nil }
            throw error
        }
        return V4L2Filled(
            index: Int(buffer.index), bytesUsed: Int(buffer.bytesused), flags: buffer.flags, sequence: buffer.sequence,
            stamp: Timestamp(nanoseconds: cv4l_stamp_ns(&buffer)))
    }

    package func bytes(of buffer: V4L2Filled, limit: Int) -> FrameBytes {
        guard mapped.indices.contains(buffer.index) else { return FrameBytes([]) }
        let memory = mapped[buffer.index]
        return pool.copy(UnsafeRawBufferPointer(rebasing: memory.prefix(min(buffer.bytesUsed, limit, memory.count))))
    }

    package func streamOn() throws(Errno) {
        var type = Int32(bitPattern: Self.type)
        try control(cv4l_VIDIOC_STREAMON, &type)
    }

    package func streamOff() {
        var type = Int32(bitPattern: Self.type)
        // An unplugged camera can't be told; its stream has ended anyway.
        try? control(cv4l_VIDIOC_STREAMOFF, &type)
    }

    package func close() {
        guard isOpen else { return }
        isOpen = false
        unmap()
        _ = Glibc.close(node)
    }

    // MARK: Inside

    private func control<T>(_ request: UInt, _ argument: inout T) throws(Errno) {
        try withUnsafeMutablePointer(to: &argument) { pointer throws(Errno) in
            _ = try throwingErrno { ioctl(node, request, UnsafeMutableRawPointer(pointer)) }
        }
    }

    private func unmap() {
        for memory in mapped {
            _ = munmap(UnsafeMutableRawPointer(mutating: memory.baseAddress), memory.count)
        }
        mapped = []
    }

    private static func buffer(_ index: Int) -> v4l2_buffer {
        var buffer = v4l2_buffer()
        buffer.type = type
        buffer.memory = V4L2_MEMORY_MMAP.rawValue
        buffer.index = UInt32(clamping: index)
        return buffer
    }

    private static func text<T>(_ letters: T) -> String {
        withUnsafeBytes(of: letters) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }

    private func offer(_ index: Int) -> V4L2Offer? {
        var format = v4l2_fmtdesc()
        format.type = Self.type
        format.index = UInt32(clamping: index)
        guard (try? control(cv4l_VIDIOC_ENUM_FMT, &format)) != nil else { return nil }
        return V4L2Offer(fourCC: FourCC(rawValue: format.pixelformat), sizes: sizes(of: format.pixelformat))
    }

    private func sizes(of format: UInt32) -> [V4L2Offer.Size] {
        var sizes: [V4L2Offer.Size] = []
        for index in 0..<UInt32(256) {
            var entry = v4l2_frmsizeenum()
            entry.index = index
            entry.pixel_format = format
            guard (try? control(cv4l_VIDIOC_ENUM_FRAMESIZES, &entry)) != nil else { break }
            guard entry.type == V4L2_FRMSIZE_TYPE_DISCRETE.rawValue else {
                let size = entry.stepwise
                guard size.min_width <= size.max_width, size.min_height <= size.max_height else { break }
                sizes.append(
                    V4L2Offer.Size(
                        width: Int(size.min_width)...Int(size.max_width),
                        height: Int(size.min_height)...Int(size.max_height),
                        rates: rates(of: format, size.max_width, size.max_height)))
                break
            }
            let (width, height) = (Int(entry.discrete.width), Int(entry.discrete.height))
            let rates = rates(of: format, entry.discrete.width, entry.discrete.height)
            sizes.append(V4L2Offer.Size(width: width...width, height: height...height, rates: rates))
        }
        return sizes
    }

    private func rates(of format: UInt32, _ width: UInt32, _ height: UInt32) -> [Double] {
        var rates: Set<Double> = []
        for index in 0..<UInt32(256) {
            var entry = v4l2_frmivalenum()
            entry.index = index
            entry.pixel_format = format
            entry.width = width
            entry.height = height
            guard (try? control(cv4l_VIDIOC_ENUM_FRAMEINTERVALS, &entry)) != nil else { break }
            guard entry.type == V4L2_FRMIVAL_TYPE_DISCRETE.rawValue else {
                for bound in [entry.stepwise.min, entry.stepwise.max] {
                    if let rate = FrameInterval(bound.numerator, bound.denominator).rate { rates.insert(rate) }
                }
                break
            }
            if let rate = FrameInterval(entry.discrete.numerator, entry.discrete.denominator).rate {
                rates.insert(rate)
            }
        }
        return rates.sorted()
    }
}
