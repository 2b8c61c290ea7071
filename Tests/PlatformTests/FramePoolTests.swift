internal import Platform
internal import Testing

@Suite struct FramePoolTests {
    @Test("a frame holds what was copied as long as anybody has it, and its memory is used again")
    func reuse() {
        let pool = FramePool()
        let source = (0..<1000).map { UInt8(truncatingIfNeeded: $0) }
        var frames = [source.withUnsafeBytes { pool.copy($0) }]
        frames.append(frames[0])
        frames.removeFirst()
        #expect(pool.idleBytes == 0)
        #expect(frames[0].array == source)
        frames = []
        #expect(pool.idleBytes == 65_536)
        frames.append(source.withUnsafeBytes { pool.copy($0) })
        #expect(pool.idleBytes == 0)
        #expect(frames[0].array == source)
    }

    @Test("what a stall piled up goes back to the system")
    func bounded() {
        let pool = FramePool()
        let source = [UInt8](repeating: 7, count: 100_000)
        var frames = (0..<100).map { _ in source.withUnsafeBytes { pool.copy($0) } }
        #expect(pool.idleBytes == 0)
        frames = []
        #expect(pool.idleBytes > 0)
        // Eight blocks of 100,000 bytes and a quarter, in granules of 64 KiB: 131,072 each.
        #expect(pool.idleBytes == 8 * 131_072)
        // A smaller one finds room in what waits; a larger one doesn't.
        let small = source.prefix(10).withUnsafeBytes { pool.copy($0) }
        #expect(pool.idleBytes == 7 * 131_072)
        #expect(small.array == [UInt8](repeating: 7, count: 10))
        #expect(frames.isEmpty)
    }

    @Test func noBytesNeedNoMemory() {
        #expect(FramePool().copy(UnsafeRawBufferPointer(start: nil, count: 0)).array.isEmpty)
        #expect(FrameBytes([1, 2]).array == [1, 2])
    }
}
