internal import Testing
internal import Timing

@Suite struct ClockMappingInverseTests {
    /// By hand: 2 s after the reference, with +100 ppm, the target is 200 µs further.
    @Test("offset, skew and ageing of the bound by arithmetic")
    func arithmetic() {
        let mapping = ClockMapping<RigTime, HostTime>(
            reference: Timestamp(nanoseconds: 1_000_000_000), offset: .seconds(3600), skew: 100e-6,
            bound: .microseconds(10), skewBound: 1e-6)
        let later = Timestamp<RigTime>(nanoseconds: 3_000_000_000)
        #expect(mapping.map(later).nanoseconds == 3_000_000_000 + 3_600_000_000_000 + 200_000)
        #expect(mapping.bound(at: later).nanoseconds == 10_000 + 2000 + 1)
        #expect(mapping.bound(at: Timestamp(nanoseconds: -1_000_000_000)).nanoseconds == 10_000 + 2000 + 1)
    }

    @Test("there and back is the same instant to 2 ns", arguments: [-1e-3, -1e-6, 0, 3e-5, 1e-3])
    func inverse(skew: Double) {
        let mapping = ClockMapping<RigTime, HostTime>(
            reference: Timestamp(nanoseconds: 77), offset: .seconds(-3600), skew: skew, bound: .microseconds(10),
            skewBound: 1e-6)
        for age in [-10_000_000_000, -1, 0, 5, 999_999_999, 60_000_000_000] as [Int64] {
            let instant = Timestamp<RigTime>(nanoseconds: 77 + age)
            #expect((mapping.inverse.map(mapping.map(instant)) - instant).magnitude <= .nanoseconds(2))
        }
        #expect(mapping.inverse.bound >= .seconds(mapping.bound.seconds / 1.001))
    }
}
