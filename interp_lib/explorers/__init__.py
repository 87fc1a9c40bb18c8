"""Interactive pictures: parameters, and a pure function from them to a drawing."""
