/// The shortest decimal digits that read back as the same Double; of these the nearest to it.
///
/// The algorithm is Schubfach (Raffaello Giulietti, "The Schubfach way to render doubles", 2020): a candidate on each of
/// two scales, and exact comparisons by one multiplication with a power of ten of 128 bits. Numbers of few digits, as
/// sensors have them, go a shorter way. It writes into the caller's bytes and allocates nothing; the standard library's
/// `description` makes a `String` of each number, which takes most of a row's time.
enum ShortestDecimal {
    /// Bytes that a number may take.
    static let most = 32

    /// Writes a number as JSON has it; NaN and infinity, which it hasn't, become null.
    ///
    /// Whole numbers below 2^53 have no point; others are as the standard library prints them. Gives back the bytes
    /// written; there must be room for `most`.
    static func write(_ value: Double, to out: UnsafeMutablePointer<UInt8>) -> Int {
        guard value.isFinite else { return write("null", to: out) }
        let magnitude = value.magnitude
        var length = 0
        if value.sign == .minus {
            out[0] = UInt8(ascii: "-")
            length = 1
        }
        if magnitude < 9_007_199_254_740_992 {
            let whole = UInt64(magnitude)
            if Double(whole) == magnitude {
                // -0 is written so that it reads back.
                if whole == 0, length == 1 { return write("-0.0", to: out) }
                return length + write(whole, to: out + length)
            }
            // A decimal of at most 15 digits is the only one of its length that reads as its Double.
            if magnitude < 9e8 {
                let scaled = UInt64(magnitude * 1e6 + 0.5)
                if Double(scaled) / 1e6 == magnitude, magnitude >= 1e-4 {
                    return length + places(digits: scaled, exponent: -6, to: out + length)
                }
            }
        }
        let (digits, exponent) = shortest(magnitude)
        return length + places(digits: digits, exponent: exponent, to: out + length)
    }

    /// Writes a whole number; there must be room for 20 bytes.
    static func write(_ value: Int64, to out: UnsafeMutablePointer<UInt8>) -> Int {
        guard value < 0 else { return write(UInt64(value), to: out) }
        out[0] = UInt8(ascii: "-")
        return 1 + write(value.magnitude, to: out + 1)
    }

    static func write(_ text: StaticString, to out: UnsafeMutablePointer<UInt8>) -> Int {
        out.update(from: text.utf8Start, count: text.utf8CodeUnitCount)
        return text.utf8CodeUnitCount
    }

    static func write(_ text: UnsafeBufferPointer<UInt8>, to out: UnsafeMutablePointer<UInt8>) -> Int {
        guard let start = text.baseAddress else { return 0 }
        out.update(from: start, count: text.count)
        return text.count
    }

    // MARK: Digits to text

    private static let pairs: StaticString =
        """
        00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748495051525354\
        55565758596061626364656667686970717273747576777879808182838485868788899091929394959697989900
        """

    static func write(_ value: UInt64, to out: UnsafeMutablePointer<UInt8>) -> Int {
        guard value >= 100_000_000 else { return few(UInt32(truncatingIfNeeded: value), to: out) }
        let (high, low) = value.quotientAndRemainder(dividingBy: 100_000_000)
        let length = write(high, to: out)
        eight(UInt32(truncatingIfNeeded: low), to: out + length)
        return length + 8
    }

    private static func eight(_ value: UInt32, to out: UnsafeMutablePointer<UInt8>) {
        let (high, low) = (value / 10_000, value % 10_000)
        pair(high / 100, to: out)
        pair(high % 100, to: out + 2)
        pair(low / 100, to: out + 4)
        pair(low % 100, to: out + 6)
    }

    private static func few(_ value: UInt32, to out: UnsafeMutablePointer<UInt8>) -> Int {
        if value < 100 {
            guard value >= 10 else {
                out[0] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: value)
                return 1
            }
            pair(value, to: out)
            return 2
        }
        let length = few(value / 100, to: out)
        pair(value % 100, to: out + length)
        return length + 2
    }

    private static func pair(_ value: UInt32, to out: UnsafeMutablePointer<UInt8>) {
        let place = pairs.utf8Start + Int(value) * 2
        out[0] = place[0]
        out[1] = place[1]
    }

    /// digits × 10^exponent as the standard library lays it out: with a point from 1e-4 to 2^53, else with an exponent.
    private static func places(digits: UInt64, exponent: Int, to out: UnsafeMutablePointer<UInt8>) -> Int {
        var (digits, exponent) = (digits, exponent)
        if digits % 100_000_000 == 0 { (digits, exponent) = (digits / 100_000_000, exponent + 8) }
        while digits % 10 == 0 { (digits, exponent) = (digits / 10, exponent + 1) }
        // The digits are moved apart where the point comes between them.
        let count = write(digits, to: out)
        let point = count + exponent
        if exponent == 0, digits == 9_007_199_254_740_992 { return count + write(".0", to: out + count) }
        if point > 0, exponent < 0 {
            for place in stride(from: count, to: point, by: -1) { out[place] = out[place - 1] }
            out[point] = UInt8(ascii: ".")
            return count + 1
        }
        if point <= 0, point > -4 {
            let shift = 2 - point
            for place in stride(from: count - 1, through: 0, by: -1) { out[place + shift] = out[place] }
            out[0] = UInt8(ascii: "0")
            out[1] = UInt8(ascii: ".")
            for place in 2..<shift { out[place] = UInt8(ascii: "0") }
            return count + shift
        }
        var length = count
        if count > 1 {
            for place in stride(from: count, to: 1, by: -1) { out[place] = out[place - 1] }
            out[1] = UInt8(ascii: ".")
            length += 1
        }
        out[length] = UInt8(ascii: "e")
        out[length + 1] = UInt8(ascii: point > 0 ? "+" : "-")
        let size = UInt32((point - 1).magnitude)
        length += 2
        if size < 10 {
            pair(size, to: out + length)
            return length + 2
        }
        return length + few(size, to: out + length)
    }

    // MARK: Schubfach

    /// The digits and the exponent of ten of a positive finite number.
    static func shortest(_ value: Double) -> (digits: UInt64, exponent: Int) {
        let fraction = value.significandBitPattern
        let biased = Int(value.exponentBitPattern)
        let isSubnormal = biased == 0
        let c = isSubnormal ? fraction : fraction | 1 << 52
        let q = (isSubnormal ? 1 : biased) - 1075
        // Below a power of two the neighbour is only half as far away.
        let isCloser = fraction == 0 && biased > 1
        let bound: UInt64 = c & 1
        let k = (q &* 1_262_611 &- (isCloser ? 524_031 : 0)) >> 22
        let h = UInt64(truncatingIfNeeded: q &+ ((-k) &* 1_741_647) >> 19 &+ 1)
        let power = PowersOfTen.value(-k)
        let low = roundToOdd(power, (4 &* c &- (isCloser ? 1 : 2)) << h)
        let middle = roundToOdd(power, (4 &* c) << h)
        let high = roundToOdd(power, (4 &* c &+ 2) << h)
        let (lower, upper) = (low &+ bound, high &- bound)
        let s = middle / 4
        if s >= 10 {
            let tens = s / 10
            let isBelow = lower <= 40 &* tens
            let isAbove = 40 &* tens &+ 40 <= upper
            if isBelow != isAbove { return (tens &+ (isAbove ? 1 : 0), k &+ 1) }
        }
        let isBelow = lower <= 4 &* s
        let isAbove = 4 &* s &+ 4 <= upper
        if isBelow != isAbove { return (s &+ (isAbove ? 1 : 0), k) }
        let half = 4 &* s &+ 2
        let isUp = middle > half || middle == half && s & 1 == 1
        return (s &+ (isUp ? 1 : 0), k)
    }

    /// The product's upper bits, with the last one set when any bit below isn't zero.
    private static func roundToOdd(_ power: PowersOfTen.Value, _ factor: UInt64) -> UInt64 {
        let below = power.low.multipliedFullWidth(by: factor).high
        let (upper, lower) = power.high.multipliedFullWidth(by: factor)
        let (sum, carry) = lower.addingReportingOverflow(below)
        return (upper &+ (carry ? 1 : 0)) | (sum > 1 ? 1 : 0)
    }
}

/// 10^-292 to 10^324 with 128 bits each, the first of them set; rounded up.
enum PowersOfTen {
    struct Value {
        var high: UInt64
        var low: UInt64
    }

    private static let least = -292
    private static let most = 324

    /// Never freed: an array would be retained for each number.
    nonisolated(unsafe) private static let table: UnsafePointer<Value> = {
        let table = UnsafeMutablePointer<Value>.allocate(capacity: most - least + 1)
        for exponent in least...most { (table + (exponent - least)).initialize(to: exactly(exponent)) }
        return UnsafePointer(table)
    }()

    /// A finite number needs no power beyond the table's ends.
    static func value(_ exponent: Int) -> Value { table[exponent - least] }

    /// By whole numbers of any length, least word first.
    private static func exactly(_ exponent: Int) -> Value {
        var power: [UInt32] = [1]
        for _ in 0..<exponent.magnitude {
            var carry: UInt64 = 0
            for index in power.indices {
                let product = UInt64(power[index]) * 10 + carry
                power[index] = UInt32(truncatingIfNeeded: product)
                carry = product >> 32
            }
            if carry > 0 { power.append(UInt32(carry)) }
        }
        return exponent >= 0 ? upper(power) : inverse(power)
    }

    private static func bits(_ number: [UInt32]) -> Int {
        number.count * 32 - (number.last?.leadingZeroBitCount ?? 0)
    }

    private static func bit(_ number: [UInt32], _ place: Int) -> UInt64 {
        place < 0 ? 0 : UInt64(number[place / 32] >> UInt32(place % 32) & 1)
    }

    /// The first 128 bits, and one more when something follows.
    private static func upper(_ number: [UInt32]) -> Value {
        let count = bits(number)
        var value = Value(high: 0, low: 0)
        for index in 0..<64 {
            value.high = value.high << 1 | bit(number, count - 1 - index)
            value.low = value.low << 1 | bit(number, count - 65 - index)
        }
        let hasMore = count > 128 && (0..<(count - 128)).contains { bit(number, $0) == 1 }
        return hasMore ? successor(value) : value
    }

    /// The first 128 bits of 1 / number by long division, and one more, since it never ends.
    private static func inverse(_ number: [UInt32]) -> Value {
        var rest = [UInt32](repeating: 0, count: number.count + 1)
        let divisor = number + [0]
        // The greatest power of two that isn't greater than the divisor: each step doubles it.
        let start = bits(number) - 1
        rest[start / 32] = 1 << UInt32(start % 32)
        var value = Value(high: 0, low: 0)
        for index in 0..<128 {
            double(&rest)
            let fits = !isLess(rest, divisor)
            if fits { subtract(divisor, from: &rest) }
            if index < 64 {
                value.high = value.high << 1 | (fits ? 1 : 0)
            } else {
                value.low = value.low << 1 | (fits ? 1 : 0)
            }
        }
        return successor(value)
    }

    private static func successor(_ value: Value) -> Value {
        let (low, carry) = value.low.addingReportingOverflow(1)
        return Value(high: value.high + (carry ? 1 : 0), low: low)
    }

    private static func double(_ number: inout [UInt32]) {
        var carry: UInt32 = 0
        for index in number.indices {
            let top = number[index] >> 31
            number[index] = number[index] << 1 | carry
            carry = top
        }
    }

    private static func isLess(_ a: [UInt32], _ b: [UInt32]) -> Bool {
        for index in a.indices.reversed() where a[index] != b[index] { return a[index] < b[index] }
        return false
    }

    private static func subtract(_ b: [UInt32], from a: inout [UInt32]) {
        var borrow: Int64 = 0
        for index in a.indices {
            let difference = Int64(a[index]) - Int64(b[index]) - borrow
            a[index] = UInt32(truncatingIfNeeded: difference)
            borrow = difference < 0 ? 1 : 0
        }
    }
}
