/// Numbers of bytes for people: decimal units, as disks are sold.
package enum ByteCount {
    /// "0 B", "999 B", "1.0 kB", "12.3 MB", "4.0 TB".
    package static func text(_ bytes: Int64) -> String {
        let negative = bytes < 0
        var value = Double(bytes.magnitude)
        if value < 1000 { return "\(bytes) B" }
        var unit = 0
        // 999.95 would be written as 1000.0.
        while value >= 999.95 && unit < 6 {
            value /= 1000
            unit += 1
        }
        let tenths = Int64((value * 10).rounded())
        return "\(negative ? "-" : "")\(tenths / 10).\(tenths % 10) \(["B", "kB", "MB", "GB", "TB", "PB", "EB"][unit])"
    }
}
