internal import Devices
internal import Glibc

/// A sink that once keeps the device's thread waiting, as a machine does that is far too busy.
final class StallingSink: SampleSink {
    let inner = EmulatedCollector()
    private let after: Int
    private let milliseconds: UInt32

    init(after: Int, milliseconds: UInt32) {
        self.after = after
        self.milliseconds = milliseconds
    }

    func deliver(_ sample: Sample) {
        inner.deliver(sample)
        if inner.content.samples.count == after { usleep(milliseconds * 1000) }
    }

    func report(_ event: DeviceEvent) { inner.report(event) }
}
