internal import Glibc
internal import Synchronization

/// The bytes of one video frame: copies share the memory, and nobody changes it.
package struct FrameBytes: Sendable {
    private enum Storage: Sendable {
        case array([UInt8])
        case block(FrameBlock)
    }

    private let storage: Storage
    package let count: Int

    /// Shares an array; nothing is copied.
    package init(_ array: [UInt8]) {
        storage = .array(array)
        count = array.count
    }

    fileprivate init(_ block: FrameBlock, count: Int) {
        storage = .block(block)
        self.count = count
    }

    package func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        switch storage {
        case .array(let array): try array.withUnsafeBytes(body)
        case .block(let block): try body(UnsafeRawBufferPointer(start: block.memory, count: count))
        }
    }

    /// A copy.
    package var array: [UInt8] { withUnsafeBytes { Array($0) } }
}

/// Memory for the frames of one camera, used again and again.
///
/// A fresh array of a JPEG's size costs a page fault for each 4 KiB of it, which is as much as the copy itself.
///
/// Concurrency: `copy` on the camera's thread; a block comes back from whatever thread lets go of the last frame in it.
package final class FramePool: Sendable {
    /// As many wait at most: what a stalled writer had piled up is given back to the system.
    private static let mostFree = 8
    private static let granule = 64 << 10

    private let free = Mutex<[UncheckedBlock]>([])

    /// Memory that nobody uses.
    fileprivate struct UncheckedBlock: @unchecked Sendable {
        let memory: UnsafeMutableRawPointer
        let capacity: Int
    }

    package init() {}

    deinit { free.withLock { for block in $0 { Glibc.free(block.memory) } } }

    /// Bytes that are kept for later frames.
    package var idleBytes: Int { free.withLock { $0.reduce(0) { $0 + $1.capacity } } }

    /// A frame with a copy of the bytes.
    package func copy(_ bytes: UnsafeRawBufferPointer) -> FrameBytes {
        guard let source = bytes.baseAddress, bytes.count > 0 else { return FrameBytes([]) }
        let block = take(bytes.count)
        block.memory.copyMemory(from: source, byteCount: bytes.count)
        return FrameBytes(FrameBlock(block, home: self), count: bytes.count)
    }

    private func take(_ count: Int) -> UncheckedBlock {
        // The one that came back last is the one that is still in the processor's cache.
        let found = free.withLock { free in
            free.lastIndex { $0.capacity >= count }.map { free.remove(at: $0) }
        }
        if let found { return found }
        // JPEGs vary in size: a quarter more serves the next ones too.
        let capacity = (count + count / 4 + Self.granule) / Self.granule * Self.granule
        guard let memory = malloc(capacity) else { preconditionFailure("no memory for a frame of \(count) bytes") }
        return UncheckedBlock(memory: memory, capacity: capacity)
    }

    fileprivate func give(_ block: UncheckedBlock) {
        let surplus = free.withLock { free -> UncheckedBlock? in
            free.append(block)
            guard free.count > Self.mostFree else { return nil }
            let smallest = free.indices.min { free[$0].capacity < free[$1].capacity } ?? 0
            return free.remove(at: smallest)
        }
        if let surplus { Glibc.free(surplus.memory) }
    }
}

/// One block in use; it goes home with its last user.
private final class FrameBlock: Sendable {
    private let block: FramePool.UncheckedBlock
    private let home: FramePool

    init(_ block: FramePool.UncheckedBlock, home: FramePool) {
        self.block = block
        self.home = home
    }

    deinit { home.give(block) }

    var memory: UnsafeMutableRawPointer { block.memory }
}
