internal import Dispatch
internal import Glibc
internal import Platform
internal import Testing

@Suite(.timeLimit(.minutes(1))) struct SignalsTests {
    @Test("A signal to the program arrives as a value, with no thread's mask to help it")
    func arrives() async {
        await #expect(processExitsWith: .exitCode(7)) {
            // Another thread than the one that asks for the signals, with nothing blocked, is what the kernel may choose.
            DispatchQueue.global().async { while true { pause() } }
            Signals.block()
            let loop = EventLoop(name: "signals")
            let signals = try Signals.stream(on: loop)
            kill(getpid(), SIGTERM)
            for await number in signals where number == SIGTERM { exit(7) }
        }
    }
}
