/// Where the elements of a scan lie: in the order of their index, each aligned to its own size, the whole to the largest.
package struct IIOScanLayout: Sendable, Hashable {
    package struct Element: Sendable, Hashable {
        /// "in_accel_x", "in_timestamp".
        package var name: String
        package var index: Int
        package var type: IIOScanType
        /// Bytes from the scan's beginning.
        package internal(set) var offset = 0

        package init(name: String, index: Int, type: IIOScanType) {
            self.name = name
            self.index = index
            self.type = type
        }
    }

    /// In the order of the scan.
    package let elements: [Element]
    /// Bytes of one scan.
    package let size: Int

    package init(_ elements: [Element]) {
        var (placed, end, largest) = ([Element](), 0, 1)
        for var element in elements.sorted(by: { $0.index < $1.index }) {
            let size = element.type.size
            element.offset = (end + size - 1) / size * size
            end = element.offset + size * element.type.count
            largest = max(largest, size)
            placed.append(element)
        }
        self.elements = placed
        size = (end + largest - 1) / largest * largest
    }

    /// The whole scans in what was read; what is left over is nobody's.
    package func scans(in bytes: [UInt8]) -> [ArraySlice<UInt8>] {
        guard size > 0 else { return [] }
        return stride(from: 0, through: bytes.count - size, by: size).map { bytes[$0..<($0 + size)] }
    }

    /// The values of an element in a scan.
    package func values(of element: Element, in scan: ArraySlice<UInt8>) -> [Int64] {
        (0..<element.type.count).compactMap {
            element.type.value(in: scan, at: scan.startIndex + element.offset + $0 * element.type.size)
        }
    }
}
