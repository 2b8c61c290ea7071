package import Platform
package import Timing

/// What a camera needs of a V4L2 capture node: one function for each call, in values.
///
/// It is the lowest seam of the cameras: `V4L2Node` makes the system calls; a script can answer in its place.
///
/// Concurrency: used by one thread, the camera's event loop.
package protocol V4L2Port: AnyObject {
    /// What to poll for frames.
    var descriptor: Int32 { get }

    /// The corresponding ioctl is `VIDIOC_QUERYCAP`.
    func capability() throws(Errno) -> V4L2Capability

    /// The corresponding ioctls are `VIDIOC_ENUM_FMT`, `VIDIOC_ENUM_FRAMESIZES` and `VIDIOC_ENUM_FRAMEINTERVALS`.
    func offers() -> [V4L2Offer]

    /// Asks for a picture; the answer is what the driver made of it.
    ///
    /// The corresponding ioctl is `VIDIOC_S_FMT`.
    func setPicture(_ wanted: V4L2Picture) throws(Errno) -> V4L2Picture

    /// Asks for a rate in frames a second; nil when the driver has no say in it.
    ///
    /// The corresponding ioctl is `VIDIOC_S_PARM`.
    func setRate(_ rate: Double) throws(Errno) -> Double?

    /// Makes and maps the buffers; the answer is how many there are, and the flags of the first one.
    ///
    /// The corresponding ioctls are `VIDIOC_REQBUFS` and `VIDIOC_QUERYBUF`.
    func mapBuffers(_ count: Int) throws(Errno) -> (count: Int, flags: UInt32)

    /// Gives a buffer to the driver.
    ///
    /// The corresponding ioctl is `VIDIOC_QBUF`.
    func queue(_ index: Int) throws(Errno)

    /// Takes a filled buffer; nil when there is none now.
    ///
    /// The corresponding ioctl is `VIDIOC_DQBUF`.
    func dequeue() throws(Errno) -> V4L2Filled?

    /// Copies what a taken buffer holds, at most `limit` bytes.
    func bytes(of buffer: V4L2Filled, limit: Int) -> FrameBytes

    /// The corresponding ioctl is `VIDIOC_STREAMON`.
    func streamOn() throws(Errno)

    /// Ends the stream and takes all buffers back.
    ///
    /// The corresponding ioctl is `VIDIOC_STREAMOFF`.
    func streamOff()

    /// Unmaps the buffers and closes the node.
    func close()
}

/// Opens the node at a path.
package typealias V4L2Connect = @Sendable (String) throws(Errno) -> any V4L2Port

/// Who a node is and what it can do.
package struct V4L2Capability: Sendable, Hashable {
    package var driver: String
    package var card: String
    package var bus: String
    /// `V4L2_CAP_*` of this node, not of the whole device.
    package var flags: UInt32

    package init(driver: String, card: String, bus: String, flags: UInt32) {
        self.driver = driver
        self.card = card
        self.bus = bus
        self.flags = flags
    }
}

/// One pixel format that a node offers.
package struct V4L2Offer: Sendable, Hashable {
    package struct Size: Sendable, Hashable {
        package var width: ClosedRange<Int>
        package var height: ClosedRange<Int>
        /// Frames a second, ascending; empty when the driver doesn't say.
        package var rates: [Double]

        package init(width: ClosedRange<Int>, height: ClosedRange<Int>, rates: [Double]) {
            self.width = width
            self.height = height
            self.rates = rates
        }
    }

    package var fourCC: FourCC
    package var sizes: [Size]

    package init(fourCC: FourCC, sizes: [Size]) {
        self.fourCC = fourCC
        self.sizes = sizes
    }
}

/// The shape of the pictures.
package struct V4L2Picture: Sendable, Hashable {
    package var fourCC: FourCC
    package var width: Int
    package var height: Int
    package var bytesPerLine: Int

    package init(fourCC: FourCC, width: Int, height: Int, bytesPerLine: Int = 0) {
        self.fourCC = fourCC
        self.width = width
        self.height = height
        self.bytesPerLine = bytesPerLine
    }
}

/// A buffer as the driver gave it.
package struct V4L2Filled: Sendable, Hashable {
    package var index: Int
    package var bytesUsed: Int
    package var flags: UInt32
    package var sequence: UInt32
    /// On whatever clock the flags say.
    package var stamp: Timestamp<DeviceTime>

    package init(index: Int, bytesUsed: Int, flags: UInt32, sequence: UInt32, stamp: Timestamp<DeviceTime>) {
        self.index = index
        self.bytesUsed = bytesUsed
        self.flags = flags
        self.sequence = sequence
        self.stamp = stamp
    }
}
