/// From raw counts of a device's channels to the values of a row, turned by the mount matrix.
///
/// Pure.
package struct IIOConverter: Sendable, Hashable {
    package let channels: [IIOChannel]
    /// Places of x, y and z in a row, with the turn for them.
    private let turns: [Turn]

    private struct Turn: Sendable, Hashable {
        var places: [Int]
        var matrix: IIOMountMatrix
    }

    /// The matrix of a quantity's axes is given by its word ("accel", "gyro").
    package init(_ channels: [IIOChannel], mount: (String) -> IIOMountMatrix?) {
        self.channels = channels
        turns = ["accel", "gyro", "mag", "gravity"].compactMap { word in
            let places = ["x", "y", "z"].compactMap { axis in channels.firstIndex { $0.name == "\(word)_\(axis)" } }
            guard places.count == 3, let matrix = mount(word), !matrix.isIdentity else { return nil }
            return Turn(places: places, matrix: matrix)
        }
    }

    /// Whether some axes are turned.
    package var isTurned: Bool { !turns.isEmpty }

    /// The row for as many raw counts as there are channels.
    package func row(_ raw: [Int64]) -> [Double]? {
        guard raw.count == channels.count else { return nil }
        var values = zip(channels, raw).map { $0.value($1) }
        for turn in turns {
            let (x, y, z) = turn.matrix.turn(values[turn.places[0]], values[turn.places[1]], values[turn.places[2]])
            (values[turn.places[0]], values[turn.places[1]], values[turn.places[2]]) = (x, y, z)
        }
        return values
    }
}
