internal import Testing
internal import Timing

@Suite struct TimestampTests {
    @Test("arithmetic saturates instead of trapping")
    func saturates() {
        let late = Timestamp<HostTime>(nanoseconds: .max)
        let early = Timestamp<HostTime>(nanoseconds: .min)
        #expect(late + .seconds(1) == late)
        #expect(early - .seconds(1) == early)
        #expect((late - early).nanoseconds == .max)
        #expect((early - late).nanoseconds == .min)
        #expect((-Interval(nanoseconds: .min)).nanoseconds == .max)
        #expect(Interval.seconds(.nan) == .zero)
        #expect(Interval.seconds(1e300).nanoseconds == .max)
        #expect(Interval.seconds(-.infinity).nanoseconds == .min)
    }

    @Test("seconds are rounded to the nanosecond")
    func rounding() {
        #expect(Interval.seconds(0.1).nanoseconds == 100_000_000)
        #expect(Interval.seconds(-1.5).nanoseconds == -1_500_000_000)
        #expect(Interval.milliseconds(3) == .microseconds(3000))
    }
}

@Suite struct ClockExchangeTests {
    /// Remote is 3600 s ahead; 100 ns out, 300 ns back, 50 ns between.
    @Test("offset and delay by NTP's formulas")
    func formulas() {
        let exchange = ClockExchange<RigTime, HostTime>(
            sent: Timestamp(nanoseconds: 1000), arrived: Timestamp(nanoseconds: 3_600_000_001_100),
            answered: Timestamp(nanoseconds: 3_600_000_001_150), received: Timestamp(nanoseconds: 1450))
        // delay = 450 − 50 = 400; offset = (3600e9+100 + 3600e9−300)/2 = 3600e9 − 100
        #expect(exchange.delay.nanoseconds == 400)
        #expect(exchange.offset.nanoseconds == 3_600_000_000_000 - 100)
    }

    @Test("the mean of two odd differences is exact", arguments: [(1, 2), (-1, 2), (-3, -4), (5, 5), (-1, -1)])
    func mean(forward: Int64, backward: Int64) {
        let exchange = ClockExchange<RigTime, HostTime>(
            sent: Timestamp(nanoseconds: 0), arrived: Timestamp(nanoseconds: forward),
            answered: Timestamp(nanoseconds: backward), received: Timestamp(nanoseconds: 0))
        #expect(exchange.offset.nanoseconds == Int64((Double(forward + backward) / 2).rounded(.down)))
    }
}

@Suite struct ClockMappingShapeTests {
    let mapping = ClockMapping<RigTime, HostTime>(
        reference: Timestamp(nanoseconds: 1_000_000_000), offset: .seconds(-3600), skew: 100e-6,
        bound: .microseconds(5), skewBound: 1e-6)

    /// After 10 s at 100 ppm the other clock has gained 1 ms.
    @Test("skew bends the map")
    func skew() {
        let mapped = mapping.map(Timestamp(nanoseconds: 11_000_000_000))
        #expect(mapped.nanoseconds == 11_000_000_000 - 3_600_000_000_000 + 1_000_000)
    }

    /// 5 µs + 10 s × 1 ppm = 15 µs, and one nanosecond for rounding.
    @Test("the bound grows with the distance from the reference, on both sides")
    func bound() {
        #expect(mapping.bound(at: Timestamp(nanoseconds: 11_000_000_000)).nanoseconds == 15_001)
        #expect(mapping.bound(at: Timestamp(nanoseconds: -9_000_000_000)).nanoseconds == 15_001)
    }

    @Test("the inverse leads back to within the rounding", arguments: [-1e12, 0, 1e9, 5e13])
    func inverse(at: Double) {
        let instant = Timestamp<RigTime>(nanoseconds: Int64(at))
        let back = mapping.inverse.map(mapping.map(instant))
        // 1e-4 squared over 5e13 ns is 0.5 ms if the second order were forgotten; Double keeps 2^-53 of the product.
        #expect((back - instant).magnitude <= .nanoseconds(4))
    }
}
