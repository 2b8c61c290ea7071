internal import Glibc

/// Numbers in the text of a line.
enum DecimalText {
    /// A number as a sensor prints it, with an optional sign, fraction and exponent; nil for anything else.
    static func double(_ bytes: ArraySlice<UInt8>) -> Double? {
        let bytes = trimmed(bytes)
        guard !bytes.isEmpty, bytes.count <= 40, bytes.allSatisfy(isPart) else { return nil }
        // Up to 15 digits and 22 places both are exact in a Double, so one division rounds correctly (Clinger 1990).
        if let quick = quick(bytes) { return quick }
        guard let value = Double(String(decoding: bytes, as: UTF8.self)), value.isFinite else { return nil }
        return value
    }

    /// A count with an optional fraction, in units of 1/`perUnit`, rounded down; nil for what is negative, no number,
    /// or doesn't fit.
    ///
    /// Never through Double.
    static func count(_ bytes: ArraySlice<UInt8>, perUnit: UInt64 = 1) -> UInt64? {
        let bytes = trimmed(bytes)
        guard let point = bytes.firstIndex(of: UInt8(ascii: ".")) else {
            return digits(bytes).flatMap { scaled($0, perUnit) }
        }
        guard let whole = digits(bytes[..<point]).flatMap({ scaled($0, perUnit) }) else { return nil }
        // Beyond 18 digits nothing changes a nanosecond.
        let fraction = bytes[(point + 1)...]
        guard fraction.allSatisfy(isDigit) else { return nil }
        let kept = fraction.prefix(18)
        guard let numerator = kept.isEmpty ? 0 : digits(kept) else { return nil }
        var denominator: UInt64 = 1
        for _ in kept { denominator *= 10 }
        let (high, low) = numerator.multipliedFullWidth(by: perUnit)
        guard high < denominator else { return nil }
        let part = denominator.dividingFullWidth((high, low)).quotient
        let (sum, overflow) = whole.addingReportingOverflow(part)
        return overflow ? nil : sum
    }

    static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var bytes = bytes
        while let first = bytes.first, isSpace(first) { bytes.removeFirst() }
        while let last = bytes.last, isSpace(last) { bytes.removeLast() }
        return bytes
    }

    static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    // MARK: Private

    private static func isDigit(_ byte: UInt8) -> Bool { byte >= 0x30 && byte <= 0x39 }

    /// Of a decimal number: no hexadecimal, no "nan".
    private static func isPart(_ byte: UInt8) -> Bool {
        isDigit(byte) || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "+")
            || byte == UInt8(ascii: "e") || byte == UInt8(ascii: "E")
    }

    private static func digits(_ bytes: ArraySlice<UInt8>) -> UInt64? {
        guard !bytes.isEmpty, bytes.count <= 20 else { return nil }
        var value: UInt64 = 0
        for byte in bytes {
            guard isDigit(byte) else { return nil }
            let (ten, overflow) = value.multipliedReportingOverflow(by: 10)
            let (sum, carry) = ten.addingReportingOverflow(UInt64(byte - 0x30))
            if overflow || carry { return nil }
            value = sum
        }
        return value
    }

    private static func scaled(_ value: UInt64, _ factor: UInt64) -> UInt64? {
        let (product, overflow) = value.multipliedReportingOverflow(by: factor)
        return overflow ? nil : product
    }

    private static let powers: [Double] = [
        1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
    ]

    /// Numbers without an exponent and of at most 15 digits.
    private static func quick(_ bytes: ArraySlice<UInt8>) -> Double? {
        var rest = bytes
        let negative = rest.first == UInt8(ascii: "-")
        if negative || rest.first == UInt8(ascii: "+") { rest.removeFirst() }
        var (value, digits, places): (UInt64, Int, Int?) = (0, 0, nil)
        for byte in rest {
            if isDigit(byte) {
                value = value &* 10 &+ UInt64(byte - 0x30)
                digits += 1
                if let known = places { places = known + 1 }
            } else if byte == UInt8(ascii: "."), places == nil {
                places = 0
            } else {
                return nil
            }
        }
        guard digits > 0, digits <= 15 else { return nil }
        let number = Double(value) / powers[places ?? 0]
        return negative ? -number : number
    }
}
