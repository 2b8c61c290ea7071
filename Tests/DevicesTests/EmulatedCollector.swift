internal import Devices
internal import Synchronization
internal import Timing

/// Keeps all that a device delivers, and lets a test wait for it.
final class EmulatedCollector: SampleSink {
    struct Content: Sendable {
        var samples: [Sample] = []
        var events: [DeviceEvent] = []
    }

    private struct State {
        var content = Content()
        var condition: (@Sendable (Content) -> Bool)?
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())

    var content: Content { state.withLock { $0.content } }

    func deliver(_ sample: Sample) { change { $0.samples.append(sample) } }
    func report(_ event: DeviceEvent) { change { $0.events.append(event) } }

    /// Suspends until the condition holds; one waiter at a time.
    func wait(for condition: @escaping @Sendable (Content) -> Bool) async -> Content {
        await withCheckedContinuation { continuation in
            let holds = state.withLock { state in
                if condition(state.content) { return true }
                (state.condition, state.waiter) = (condition, continuation)
                return false
            }
            if holds { continuation.resume() }
        }
        return content
    }

    func wait(forSamples count: Int) async -> Content { await wait { $0.samples.count >= count } }

    private func change(_ change: (inout Content) -> Void) {
        let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
            change(&state.content)
            guard let condition = state.condition, condition(state.content) else { return nil }
            state.condition = nil
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }
}

extension EmulatedCollector.Content {
    /// The recording of a one-channel 16-bit microphone on its own frame counter; what was lost is silence.
    var recording: [Float] {
        var signal: [Float] = []
        for sample in samples {
            guard case .audio(let bytes, let frames) = sample.payload, let sequence = sample.sequence else { continue }
            let start = Int(sequence)
            if signal.count < start { signal += [Float](repeating: 0, count: start - signal.count) }
            for i in 0..<frames {
                let value = Int16(bitPattern: UInt16(bytes[2 * i]) | UInt16(bytes[2 * i + 1]) << 8)
                signal.append(Float(value) / 32_767)
            }
        }
        return signal
    }

    /// Host time of a frame of that recording, by the stamp of the block that holds it, ns.
    func hostTime(ofFrame position: Double, rate: Double) -> Double? {
        let block = samples.last { sample in sample.sequence.map { Double($0) <= position } ?? false }
        guard let block, let sequence = block.sequence else { return nil }
        return Double(block.capture.nanoseconds) + (position - Double(sequence)) / rate * 1e9
    }
}
