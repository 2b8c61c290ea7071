internal import Glibc
internal import Platform

/// Lines of standard input as they are typed; each is a fault.
///
/// Concurrency: used on the thread of its loop alone, but for its making and its end.
final class FaultInput: @unchecked Sendable {
    private let loop: EventLoop
    private let handle: @Sendable (String) -> Bool
    private var input: [UInt8] = []

    /// Begins to read; the handler is called on the loop's thread and answers false for what it doesn't understand.
    init(on loop: EventLoop, _ handle: @escaping @Sendable (String) -> Bool) {
        self.loop = loop
        self.handle = handle
        // A terminal and a pipe can be waited for; a file or nothing at all has no commands to give.
        try? loop.watch(0, for: .readable) { [weak self] _ in self?.read() }
    }

    func end() { loop.unwatch(0) }

    private func read() {
        var buffer = [UInt8](repeating: 0, count: 256)
        let count = Glibc.read(0, &buffer, buffer.count)
        guard count > 0 else {
            loop.unwatch(0)
            return
        }
        input += buffer.prefix(count)
        while let end = input.firstIndex(of: 0x0A) {
            let words = input[..<end].split { $0 <= 0x20 }.map { String(decoding: $0, as: UTF8.self) }
            input.removeSubrange(...end)
            for word in words where !handle(word) {
                StandardError.write("downbeat-emulator: '\(word)' is no fault\n\(FaultPlan.help)")
            }
        }
        if input.count > 1024 { input.removeAll() }
    }
}
