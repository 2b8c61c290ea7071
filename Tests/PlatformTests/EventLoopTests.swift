internal import Glibc
internal import Platform
internal import Synchronization
internal import Testing
internal import Timing

/// An actor that lives on a loop's thread.
private actor Counter {
    private let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    private(set) var value = 0

    init(loop: EventLoop) { self.loop = loop }

    func increment() -> Bool {
        value += 1
        return loop.isOnLoop
    }
}

@Suite(.timeLimit(.minutes(1))) struct EventLoopTests {
    @Test("an actor on a loop runs on the loop's thread, also under many callers")
    func executor() async {
        let loop = EventLoop(name: "test")
        let counter = Counter(loop: loop)
        await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<1000 { group.addTask { await counter.increment() } }
            for await onLoop in group { #expect(onLoop) }
        }
        #expect(await counter.value == 1000)
    }

    @Test("timers fire in the order of their deadlines, never early")
    func timers() async {
        let loop = EventLoop(name: "test")
        let fired = Mutex<[(Int, Interval)]>([])
        let now = HostClock.now
        await withCheckedContinuation { done in
            for (index, delay) in [30, 10, 20, 0].enumerated() {
                let deadline = now + .milliseconds(Int64(delay))
                loop.schedule(at: deadline) {
                    let count = fired.withLock { list in
                        list.append((index, HostClock.now - deadline))
                        return list.count
                    }
                    if count == 4 { done.resume() }
                }
            }
        }
        let order = fired.withLock { $0 }
        #expect(order.map(\.0) == [3, 1, 2, 0])
        #expect(order.allSatisfy { $0.1 >= .zero })
    }

    @Test("a cancelled sleep ends at once with CancellationError")
    func cancellation() async {
        let loop = EventLoop(name: "test")
        let sleeping = Task { try await loop.sleep(for: .seconds(3600)) }
        sleeping.cancel()
        await #expect(throws: CancellationError.self) { try await sleeping.value }
    }

    @Test("a descriptor's handler sees the bytes, and none after unwatch")
    func descriptors() async throws {
        let loop = EventLoop(name: "test")
        var ends: [Int32] = [0, 0]
        #expect(pipe(&ends) == 0)
        let reader = FileDescriptor(owning: ends[0])
        let writer = FileDescriptor(owning: ends[1])
        let number = reader.rawValue
        let got: UInt8 = try await withCheckedThrowingContinuation { done in
            do {
                try loop.watch(number, for: .readable) { _ in
                    var byte: UInt8 = 0
                    _ = read(number, &byte, 1)
                    loop.unwatch(number)
                    done.resume(returning: byte)
                }
                try writer.writeAll([42])
            } catch {
                done.resume(throwing: error)
            }
        }
        #expect(got == 42)
        try writer.writeAll([43])
        try await loop.run {}
        #expect(try reader.read(upTo: 8) == [43])
    }

    @Test("blocked loops block nobody else: 8 of them wait for each other")
    func blocking() async throws {
        // Each blocks its thread until all 8 are in there; on a shared pool of 2 threads they would never meet.
        let meeting = try Meeting(of: 8)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for index in 0..<8 {
                let loop = EventLoop(name: "block\(index)")
                group.addTask { try await loop.run { meeting.arriveAndWait() } }
            }
            try await group.waitForAll()
        }
        #expect(meeting.arrived == 8)
    }
}

/// A barrier of the kind that blocks its threads.
private final class Meeting: Sendable {
    private let size: Int
    private let count = Mutex(0)
    private let ends: [Int32]

    init(of size: Int) throws {
        self.size = size
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else { throw Errno.current }
        self.ends = ends
    }

    deinit { ends.forEach { close($0) } }

    var arrived: Int { count.withLock { $0 } }

    func arriveAndWait() {
        let isLast = count.withLock { count in
            count += 1
            return count == size
        }
        let tokens = [UInt8](repeating: 1, count: size)
        if isLast { _ = write(ends[1], tokens, size) }
        var token: UInt8 = 0
        _ = read(ends[0], &token, 1)
    }
}
