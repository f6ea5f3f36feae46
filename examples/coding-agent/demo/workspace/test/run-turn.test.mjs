console.log('2 tests passed');
